import type { SessionMutex } from '../kit/session-mutex.ts'
import type { Deps as Below } from '../models/deps.ts'
import type { EventBroker } from './live/event-broker.ts'
import type { EventIds } from './log/event-id.ts'
import type { ContextMemo } from './log/present.ts'
import type { AppendGroups } from './log/record.ts'

export type Deps = Below & {
  events: {
    ids: EventIds
    broker: EventBroker
    mutex: SessionMutex
    /** Appends that may be committed together. */
    groups: AppendGroups
    lastContext: ContextMemo
  }
  /** Number under which this process claims steps. */
  attempts: { readonly process: number }
}
