import { createSessionMutex } from '../../kit/session-mutex.ts'

/** Ways to record appends. */
export type Statements<Append, Result> = {
  alone(append: Append): Promise<Result>
  /**
   * Records appends of several sessions in one transaction. Returns their results in order, undefined for each append
   * that was skipped because its session is locked.
   */
  together(appends: Append[]): Promise<(Result | undefined)[]>
  /** Reports whether `together`, which failed with this error, has certainly recorded nothing. */
  hasRolledBack(error: unknown): boolean
}

/** Records an append, after all earlier appends of its session. */
export type GroupCommit<Append, Result> = (append: Append) => Promise<Result>

type Waiting<Append, Result> = {
  append: Append
  resolve(result: Result | Promise<Result>): void
  reject(error: unknown): void
}

/** Maximum number of appends under way by themselves. Further ones form groups. */
const MAX_SINGLE = 3
const MAX_GROUPS = 2
const MAX_IN_GROUP = 16
/** Maximum number of appends that wait for a group. Further ones are recorded by themselves. */
const MAX_WAITING = 1000

/**
 * Records appends by themselves and at once while few are under way. Further ones form groups: all that wait when a
 * group is done are recorded in one statement, which shares the commit and the round trip. An append that was skipped,
 * or whose group failed, is recorded by itself. Nothing is recorded twice: if a group may have been committed, its
 * appends reject with the error.
 */
export function createGroupCommit<Append extends { sessionId: string }, Result>({
  alone,
  together,
  hasRolledBack,
}: Statements<Append, Result>): GroupCommit<Append, Result> {
  const runExclusive = createSessionMutex()
  const queue: Waiting<Append, Result>[] = []
  let countAlone = 0
  let countGroups = 0

  const recordAlone = async (append: Append): Promise<Result> => {
    countAlone++
    try {
      return await alone(append)
    } finally {
      countAlone--
    }
  }
  const recordGroup = async (group: Waiting<Append, Result>[]): Promise<void> => {
    countGroups++
    try {
      const results = await together(group.map(({ append }) => append))
      for (const [index, { append, resolve }] of group.entries()) resolve(results[index] ?? recordAlone(append))
    } catch (error) {
      const mayRepeat = hasRolledBack(error)
      for (const { append, resolve, reject } of group) mayRepeat ? resolve(recordAlone(append)) : reject(error)
    } finally {
      countGroups--
      recordNext()
    }
  }
  const recordNext = () => {
    while (queue.length > 0 && countGroups < MAX_GROUPS) void recordGroup(queue.splice(0, MAX_IN_GROUP))
  }
  const record = (append: Append): Promise<Result> => {
    const isCalm = queue.length === 0 && countAlone < MAX_SINGLE
    if (isCalm || queue.length >= MAX_WAITING) return recordAlone(append)
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    queue.push({ append, resolve, reject })
    recordNext()
    return promise
  }
  return (append) => runExclusive(append.sessionId, () => record(append))
}
