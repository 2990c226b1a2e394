import type { CallWriter } from '../../kit/session-scope.ts'

/** Files of sessions in Postgres, read and written by the driver itself. platform/postgres/file-store.ts implements it. */
export type FileStore = {
  /** Calls change_session_files (prisma/functions), which documents it. Returns its answer. */
  change(call: ChangeCall): Promise<unknown>
  /** Reads files with their whole contents, in one snapshot, without missing files and directories. */
  readWhole(organizationId: string, sessionId: string, paths: string[]): Promise<WholeFile[]>
  /** Like `readWhole`, but only the first files by path, up to `maxBytes` together, and at least one. */
  readFirst(organizationId: string, sessionId: string, paths: string[], maxBytes: number): Promise<WholeFile[]>
  /** Returns some bytes of a content from `start` on. Undefined if it was replaced, or at its end. */
  readPart(organizationId: string, sessionId: string, contentId: string, start: number): Promise<Uint8Array | undefined>
}

export type ChangeCall = {
  organizationId: string
  sessionId: string
  writer: CallWriter | undefined
  /** JSON. */
  changes: string
  contents: Uint8Array
  maxCount: number
  maxTotalBytes: number
}

/** File with its content. `seenContentId` names the content that the agent saw last. */
export type WholeFile = {
  path: string
  contentId: string
  seenContentId: string | null
  isBase64: boolean
  isReadonly: boolean
  bytes: Buffer
}
