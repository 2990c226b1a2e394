import type { EventType, WireEvent } from '../../contract/events.ts'
import type { EventLine } from '../../domain/events/read/read.ts'

/** Event of the log, with the data of its type. */
export type TurnEvent = { [T in EventType]: WireEvent<T> }[EventType]

/** Types that no face translates. The largest events are among them. */
export const UNUSED_TYPES = ['llm.generation', 'session.started', 'session.activated'] as const satisfies EventType[]

/** Frame of a face's stream: its data, in one line. */
export type Frame = { line: string }

/** Translation of one turn's events, in their order, into parts of a protocol's answer. */
export type Translation<Part> = {
  /** Parts that come before the first event. */
  begin(): Part[]
  event(event: TurnEvent): Part[]
  /** Parts with which the answer ends while the turn waits for its client. */
  pause(): Part[]
  /** Whether the client has been sent everything: the turn has ended, or waits for it. */
  readonly isOver: boolean
}

/** Yields the parts of a turn until it ends or waits for its client. Returns why the events ended. */
export async function* translate<Part>(
  events: AsyncGenerator<EventLine[], string>,
  translation: Translation<Part>,
): AsyncGenerator<Part[], string> {
  try {
    yield translation.begin()
    while (!translation.isOver) {
      const next = await events.next()
      if (next.done) return next.value
      const parts: Part[] = []
      for (const { line } of next.value) if (!translation.isOver) parts.push(...translation.event(JSON.parse(line)))
      if (parts.length > 0) yield parts
    }
    return 'end'
  } finally {
    await events.return('end')
  }
}
