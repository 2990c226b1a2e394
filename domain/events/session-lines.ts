/**
 * Runs the work of each session one at a time in this process, so that work waiting for the session's lock holds no
 * connection.
 */
export type SessionLines = <T>(sessionId: string, work: () => Promise<T>) => Promise<T>

export function createSessionLines(): SessionLines {
  const lines = new Map<string, Promise<unknown>>()
  return async (sessionId, work) => {
    const own = (lines.get(sessionId) ?? Promise.resolve()).then(work)
    const settled = own.catch(() => {})
    lines.set(sessionId, settled)
    try {
      return await own
    } finally {
      if (lines.get(sessionId) === settled) lines.delete(sessionId)
    }
  }
}
