import { createServer, type Server } from 'node:net'

const HOST = '127.0.0.1'

function listen(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, HOST, () => resolve(server))
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
  })
}

export async function isPortFree(port: number): Promise<boolean> {
  try {
    await close(await listen(port))
    return true
  } catch {
    return false
  }
}

/**
 * Range of ports, below the ports that systems assign to connections. A connection could take an assigned port before
 * its server starts, or starts again.
 */
const FIRST = 10_000
const LAST = 32_000
const ATTEMPTS = 100

/** Returns different free ports. Holds all of them open until the last one is known. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>()
  for (let attempt = 0; servers.size < count; attempt++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    const server = await listen(port).catch(() => undefined)
    if (server !== undefined) servers.set(port, server)
    else if (attempt >= ATTEMPTS) throw new Error('There are no free ports.')
  }
  await Promise.all([...servers.values()].map(close))
  return [...servers.keys()]
}
