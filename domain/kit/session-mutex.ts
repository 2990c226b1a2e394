import { tooMany } from './errors.ts'

/**
 * Runs the work of each session one at a time in this process, so that work waiting for the session's lock holds no
 * connection.
 */
export type SessionMutex = <T>(sessionId: string, work: () => Promise<T>) => Promise<T>

/** Work in a session's line that exceeds `maxLength` is refused with `too_many`. */
export function createSessionMutex(maxLength = Number.POSITIVE_INFINITY): SessionMutex {
  const lines = new Map<string, { last: Promise<unknown>; length: number }>()
  return async (sessionId, work) => {
    const line = lines.get(sessionId) ?? { last: Promise.resolve(), length: 0 }
    if (line.length >= maxLength) throw tooMany('Too many changes of the session are waiting; try again', 2)
    const own = line.last.then(work)
    line.last = own.catch(() => {})
    line.length++
    lines.set(sessionId, line)
    try {
      return await own
    } finally {
      line.length--
      if (line.length === 0) lines.delete(sessionId)
    }
  }
}
