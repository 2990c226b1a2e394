import { conflict, DomainError, invalid, noSession, notFound, quotaExceeded } from '../../kit/errors.ts'
import { createSessionMutex, type SessionMutex } from '../../kit/session-mutex.ts'
import { type SessionScope, WriterLost } from '../../kit/session-scope.ts'
import { waitForLocks } from '../../kit/wait-for-locks.ts'
import type { Deps } from '../deps.ts'
import type { Changed, FileChange, Repeated, Write } from './file-change.ts'
import type { ChangeCall } from './file-store.ts'

type Problem = keyof typeof PROBLEMS
type Answer =
  | Changed
  | Repeated
  | { outcome: 'refused'; problem: Problem; path: string }
  | { outcome: 'turn_ended' | 'fenced' | 'session_gone' }

/**
 * Makes all changes in one transaction, or none. Throws `not_found`, `conflict` and `invalid` according to PROBLEMS,
 * and `WriterLost` for a tool call that may no longer write.
 */
export async function changeFiles(deps: Deps, scope: SessionScope, changes: FileChange[]): Promise<Changed | Repeated> {
  const { maxCount, maxTotalBytes } = deps.quotas.files
  const sent = toSent(changes)
  const { organizationId, sessionId, writer } = scope
  const answer = await changeInTurn(
    deps,
    { organizationId, sessionId, writer, ...sent, maxCount, maxTotalBytes },
    scope,
  )
  switch (answer.outcome) {
    case 'changed':
    case 'repeated':
      return answer
    case 'refused':
      throw PROBLEMS[answer.problem](answer.path, deps)
    default:
      throw scope.writer === undefined ? noSession() : new WriterLost(answer.outcome)
  }
}

/** Maximum number of a session's pending file changes in a process, above the calls of one step of a turn. */
const MAX_WAITING = 256

export const createFileMutex = (): SessionMutex => createSessionMutex(MAX_WAITING)

/**
 * Waits until no other change of the session's files is running, in this process without a connection to Postgres.
 * Throws `too_many` if that takes too long.
 */
const changeInTurn = (deps: Deps, call: ChangeCall, { signal }: SessionScope): Promise<Answer> =>
  deps.fileMutex(call.sessionId, async () => {
    // change_session_files returns this.
    const change = async () => (await deps.fileStore.change(call)) as Answer
    return waitForLocks(change, 'The files of the session are', signal)
  })

/** Like `changeFiles`, for a user's change, which is never repeated. */
export async function changeFilesNow(deps: Deps, scope: SessionScope, changes: FileChange[]): Promise<Changed> {
  const changed = await changeFiles(deps, scope, changes)
  if (changed.outcome === 'repeated') throw new Error('Only a tool call is repeated.')
  return changed
}

/** Fields that have other names in SQL, of any change. */
type Renamed = Pick<FileChange, 'do'> &
  Partial<Pick<Write, 'bytes' | 'isBase64' | 'isReadonly' | 'isSeen'> & { isRecursive: boolean }>

/** Returns the function's parameters for changes, with all contents concatenated. */
export function toSent(changes: FileChange[]): { changes: string; contents: Uint8Array } {
  const contents: Uint8Array[] = []
  let start = 0
  const sent = changes.map((change: Renamed) => {
    const { bytes, isBase64, isReadonly, isSeen, isRecursive, ...rest } = change
    const flags = { is_base64: isBase64, is_readonly: isReadonly, is_seen: isSeen, is_recursive: isRecursive }
    if (bytes === undefined) return { ...rest, ...flags }
    contents.push(bytes)
    start += bytes.length
    return { ...rest, ...flags, start: start - bytes.length, length: bytes.length }
  })
  const [first = Buffer.alloc(0)] = contents
  return { changes: JSON.stringify(sent), contents: contents.length > 1 ? Buffer.concat(contents) : first }
}

/** Error of a change that names an outdated content of the file. */
export class FileChanged extends DomainError {
  constructor(path: string) {
    super('conflict', `${path} has been changed meanwhile; read it again`)
  }
}

/** Errors for the problems of change_session_files. */
const PROBLEMS = {
  exists: (path: string) => conflict(`${path} exists already`),
  missing: (_path: string) => notFound('File'),
  is_directory: (path: string) => invalid(`${path} is a directory, not a file`),
  not_directory: (path: string) => conflict(`${path} is a file, so there can be nothing in it`),
  is_readonly: (path: string) => invalid(`${path} is read-only until its user sets is_readonly to false with PUT`),
  of_skill: (path: string) =>
    invalid(`${path} belongs to the session's skills and is read-only; copy a file elsewhere to change it`),
  not_empty: (path: string) => invalid(`${path} is not empty; delete it with recursive=true`),
  into_itself: (path: string) => invalid(`${path} is inside the directory to be moved or copied, or is that directory`),
  changed: (path: string) => new FileChanged(path),
  too_long: (path: string) =>
    invalid(`Paths inside ${path} would have more than 1,024 bytes or 64 segments; move it to a shorter path`),
  too_many: (_path: string, { quotas }: Deps) =>
    quotaExceeded(`A session has at most ${quotas.files.maxCount} files and directories; delete some first`),
  too_large: (_path: string, { quotas }: Deps) =>
    quotaExceeded(
      `The files of a session have at most ${quotas.files.maxTotalBytes} bytes together; delete some first`,
    ),
}
