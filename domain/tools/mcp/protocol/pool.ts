import type { McpEndpoint } from './client.ts'
import type { Connection } from './connection.ts'
import type { McpTimes } from './limits.ts'

type Entry = {
  key: string
  connection: Promise<Connection>
  isOpen: boolean
  abort: AbortController
  users: number
  idle: NodeJS.Timeout | undefined
}

/** Use of a connection, which stays open at least until it is returned. */
export type Lease = {
  connection: Promise<Connection>
  /** Whether it is opened for this use. */
  isNew: boolean
  giveBack(): void
  /** Removes the connection from the pool: later calls open another one. */
  discard(): void
}

export type Pool = ReturnType<typeof createPool>

export type Open = (endpoint: McpEndpoint, signal: AbortSignal) => Promise<Connection>

/** Thrown when all connections of a process are in use. */
export class PoolFull extends Error {
  override name = 'PoolFull'
}

/**
 * Creates a pool of connections. Each session has its own, shared by its concurrent calls. A new connection may close
 * the least recently used idle one, but never one in use.
 */
export function createPool(open: Open, { times, maxConnections }: { times: McpTimes; maxConnections: number }) {
  // In the order of their last use. Entries in use may be anywhere.
  const entries = new Map<string, Entry>()
  // Includes discarded connections until they are closed.
  const all = new Set<Entry>()

  async function end(entry: Entry): Promise<void> {
    clearTimeout(entry.idle)
    if (entries.get(entry.key) === entry) entries.delete(entry.key)
    entry.abort.abort(new Error('The connection was closed.'))
    const connection = await entry.connection.catch(() => undefined)
    await connection?.close().catch(() => {})
    all.delete(entry)
  }

  function add(key: string, endpoint: McpEndpoint): Entry {
    if (all.size >= maxConnections) makeRoom()
    const abort = new AbortController()
    const entry: Entry = {
      key,
      connection: open(endpoint, abort.signal),
      isOpen: false,
      abort,
      users: 0,
      idle: undefined,
    }
    entry.connection.then(
      () => {
        entry.isOpen = true
      },
      () => void end(entry),
    )
    entries.set(key, entry)
    all.add(entry)
    return entry
  }

  function makeRoom(): void {
    const unused = [...entries.values()].find(({ users }) => users === 0)
    if (unused === undefined) throw new PoolFull('All connections to MCP servers are in use.')
    // No longer counts, although its session is still being ended.
    all.delete(unused)
    void end(unused)
  }

  function giveBack(entry: Entry): void {
    entry.users--
    if (entry.users > 0) return
    // Nobody waits for it any more.
    if (!entry.isOpen || entries.get(entry.key) !== entry) return void end(entry)
    entries.delete(entry.key)
    entries.set(entry.key, entry)
    entry.idle = setTimeout(() => void end(entry), times.idle)
    entry.idle.unref()
  }

  return {
    /** Returns the connection of a session to a server, and opens it if necessary. Throws `PoolFull`. */
    lease(endpoint: McpEndpoint, sessionId: string): Lease {
      // A secret of the organization changes without the server's row.
      const { organizationId, id, revision, secrets = [] } = endpoint
      const key = JSON.stringify([organizationId, id, revision, sessionId, ...secrets])
      const existing = entries.get(key)
      const entry = existing ?? add(key, endpoint)
      clearTimeout(entry.idle)
      entry.users++
      let isGivenBack = false
      return {
        connection: entry.connection,
        isNew: existing === undefined,
        giveBack: () => {
          if (!isGivenBack) giveBack(entry)
          isGivenBack = true
        },
        discard: () => {
          if (entries.get(key) === entry) entries.delete(key)
        },
      }
    },
    /** Closes all connections, and ends the calls on them. */
    close: async () => {
      await Promise.all([...all].map(end))
    },
    size: () => all.size,
  }
}
