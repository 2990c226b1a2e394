import { createSlots } from '../../lib/threads/slots.ts'
import type { McpServer } from '../../prisma/generated/client.ts'

/** Discoveries of one process: one at a time of each server, and a few at once, shared fairly among organizations. */
export type Discoveries = {
  /**
   * Runs the discovery of a server, or joins the one that runs already. One for an earlier revision is aborted. Resolves
   * with false when the process has no room for it, or stops.
   */
  run(server: Server, work: (signal: AbortSignal) => Promise<boolean>): Promise<boolean>
  /** Aborts all discoveries, and waits for them. */
  close(): Promise<void>
}

type Server = Pick<McpServer, 'organizationId' | 'id' | 'revision'>
type Running = { revision: number; stop: AbortController; ended: Promise<boolean> }

/** Limit on the discoveries that run at once: each may hold a list of some MiB. */
const AT_ONCE = 8
const WAIT_MS = 60_000

export function createDiscoveries(): Discoveries {
  const slots = createSlots(AT_ONCE, WAIT_MS)
  /** The latest discovery of each server. */
  const running = new Map<string, Running>()
  const unfinished = new Set<Promise<boolean>>()
  const closing = new AbortController()

  const inSlot = async (owner: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<boolean>) => {
    if (!(await slots.enter({ owner }, signal))) return false
    try {
      // The work may only listen for an abort that is to come.
      signal.throwIfAborted()
      return await work(signal)
    } finally {
      slots.leave({ owner })
    }
  }

  return {
    run: ({ organizationId, id, revision }, work) => {
      const key = `${organizationId}/${id}`
      const before = running.get(key)
      if (before !== undefined && before.revision >= revision) return before.ended
      before?.stop.abort()
      const stop = new AbortController()
      const signal = AbortSignal.any([closing.signal, stop.signal])
      const ended = inSlot(organizationId, signal, work)
        .catch((error: unknown) => {
          if (signal.aborted) return false
          throw error
        })
        .finally(() => {
          unfinished.delete(ended)
          if (running.get(key)?.stop === stop) running.delete(key)
        })
      unfinished.add(ended)
      running.set(key, { revision, stop, ended })
      return ended
    },
    close: async () => {
      closing.abort()
      await Promise.allSettled(unfinished)
    },
  }
}
