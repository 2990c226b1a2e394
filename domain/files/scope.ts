import type { SessionId } from '../../contract/ids.ts'
import type { Actor } from '../actor.ts'
import type { FileWriter } from './file-store.ts'

/** Session whose files are meant, in the organization that it must belong to. */
export type FileScope = {
  organizationId: string
  sessionId: string
  /** Tool call that writes. Absent when a user does. */
  writer?: FileWriter
  /** Ends the waiting for others who change files. */
  signal?: AbortSignal
}

export const scopeOf = ({ organizationId }: Actor, sessionId: SessionId): FileScope => ({ organizationId, sessionId })
