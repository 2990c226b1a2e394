import { createFairQueue } from '../../../lib/fair-queue.ts'
import type { McpServer } from '../../../prisma/generated/client.ts'
import type { Owners } from '../../kit/owners.ts'

/** Discoveries of one process: one at a time for each server, and a few at once for each owner. */
export type Discoveries = {
  /**
   * Runs the discovery of a server, or joins a running one. Aborts a discovery for an earlier revision. Resolves with
   * false if the process has no room for it, or stops.
   */
  run(server: Server, work: (signal: AbortSignal) => Promise<boolean>): Promise<boolean>
  /**
   * Returns how long a turn may wait for the discovery of a server, minus its running time so far: a hanging discovery
   * costs a turn its wait only once. `isKnown`: the turn can use the previous list of tools.
   */
  patienceMs(server: Server, isKnown: boolean): number
  /** Aborts all discoveries, and waits for them. */
  close(): Promise<void>
}

type Server = Pick<McpServer, 'organizationId' | 'id' | 'revision'>
type Running = { revision: number; startedAt: number; stop: AbortController; ended: Promise<boolean> }

/** Waits of a turn for a known server's list and for a first list, and of a discovery for a slot. */
export type Waits = { knownMs: number; firstMs: number; placeMs: number }

const WAITS: Waits = { knownMs: 2000, firstMs: 30_000, placeMs: 10_000 }

/**
 * Maximum number of concurrent discoveries: many, because most wait for their server. If all discoveries of one owner
 * hang, seven other owners still have slots. The client bounds the memory of each.
 */
const AT_ONCE = 64
const AT_ONCE_OF_OWNER = 8
/** Time that a server counts as known after there was no room for its discovery. */
const REFUSED_MS = 60_000

export function createDiscoveries(ownerOf: Owners['ownerOf'], waits: Waits = WAITS): Discoveries {
  const slots = createFairQueue(AT_ONCE, waits.placeMs, { maxOfOwner: AT_ONCE_OF_OWNER })
  /** The latest discovery of each server. */
  const running = new Map<string, Running>()
  /** Times at which servers were refused, latest last. */
  const refusals = new Map<string, number>()
  const unfinished = new Set<Promise<boolean>>()
  const closing = new AbortController()

  const keyOf = ({ organizationId, id }: Server) => `${organizationId}/${id}`
  const noteRefusal = (key: string) => {
    const now = performance.now()
    for (const [other, at] of refusals) if (at + REFUSED_MS <= now) refusals.delete(other)
    refusals.delete(key)
    refusals.set(key, now)
  }
  const isRefused = (key: string) => (refusals.get(key) ?? Number.NEGATIVE_INFINITY) + REFUSED_MS > performance.now()

  const inSlot = async (server: Server, signal: AbortSignal, work: (signal: AbortSignal) => Promise<boolean>) => {
    const owner = await ownerOf(server.organizationId)
    const begin = async () => {
      refusals.delete(keyOf(server))
      // The work may listen only for a later abort.
      signal.throwIfAborted()
      return work(signal)
    }
    const refuse = () => {
      noteRefusal(keyOf(server))
      return false
    }
    return slots.run({ owner }, begin, refuse, signal)
  }

  return {
    run: (server, work) => {
      const { revision } = server
      const key = keyOf(server)
      const before = running.get(key)
      if (before !== undefined && before.revision >= revision) return before.ended
      before?.stop.abort()
      const stop = new AbortController()
      const signal = AbortSignal.any([closing.signal, stop.signal])
      const ended = inSlot(server, signal, work)
        .catch((error: unknown) => {
          if (signal.aborted) return false
          throw error
        })
        .finally(() => {
          unfinished.delete(ended)
          if (running.get(key)?.stop === stop) running.delete(key)
        })
      unfinished.add(ended)
      running.set(key, { revision, startedAt: performance.now(), stop, ended })
      return ended
    },
    patienceMs: (server, isKnown) => {
      const key = keyOf(server)
      const current = running.get(key)
      const ranMs =
        current === undefined || current.revision < server.revision ? 0 : performance.now() - current.startedAt
      return Math.max((isKnown || isRefused(key) ? waits.knownMs : waits.firstMs) - ranMs, 0)
    },
    close: async () => {
      closing.abort()
      await Promise.allSettled(unfinished)
    },
  }
}
