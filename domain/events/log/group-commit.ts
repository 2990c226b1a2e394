import { createSessionMutex } from '../../kit/session-mutex.ts'

/** Ways to record appends. */
export type Statements<Append, Result> = {
  alone(append: Append): Promise<Result>
  /**
   * Records appends of several sessions in one transaction. Returns their results in order, undefined for each append
   * that it has left out.
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

/** Maximum number of statements under way. What comes meanwhile shares the next one. */
const MAX_STATEMENTS = 4
const MAX_IN_GROUP = 64
/** Maximum number of appends that wait for a statement. Further ones are recorded by themselves. */
const MAX_WAITING = 1000

/**
 * Records appends in few statements: appends share one, and so its commit and round trip, if they come at the same
 * moment or while all statements are under way. An append that the statement leaves out, or whose group failed, is recorded by
 * itself. Nothing is recorded twice: if a group may have been committed, its appends reject with the error.
 */
export function createGroupCommit<Append extends { sessionId: string }, Result>({
  alone,
  together,
  hasRolledBack,
}: Statements<Append, Result>): GroupCommit<Append, Result> {
  const runExclusive = createSessionMutex()
  const queue: Waiting<Append, Result>[] = []
  let underWay = 0
  let isPlanned = false

  const recordGroup = async (group: Waiting<Append, Result>[]): Promise<void> => {
    try {
      const results = await together(group.map(({ append }) => append))
      for (const [index, { append, resolve }] of group.entries()) resolve(results[index] ?? alone(append))
    } catch (error) {
      const mayRepeat = hasRolledBack(error)
      for (const { append, resolve, reject } of group) mayRepeat ? resolve(alone(append)) : reject(error)
    }
  }
  const recordFirst = async (): Promise<void> => {
    underWay++
    const [first, ...others] = queue.splice(0, MAX_IN_GROUP)
    if (first !== undefined && others.length > 0) await recordGroup([first, ...others])
    else if (first !== undefined) await alone(first.append).then(first.resolve, first.reject)
    underWay--
    recordNext()
  }
  const recordNext = () => {
    isPlanned = false
    while (queue.length > 0 && underWay < MAX_STATEMENTS) void recordFirst()
  }
  const record = (append: Append): Promise<Result> => {
    if (queue.length >= MAX_WAITING) return alone(append)
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    queue.push({ append, resolve, reject })
    // Whatever is appended at the same moment comes before that.
    if (!isPlanned) queueMicrotask(recordNext)
    isPlanned = true
    return promise
  }
  return (append) => runExclusive(append.sessionId, () => record(append))
}
