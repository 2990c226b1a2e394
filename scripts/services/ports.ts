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

/** Different free ports: all of them are held open until the last one is known. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(0)))
  const ports = servers.map((server) => {
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('The system gave no port number.')
    return address.port
  })
  await Promise.all(servers.map(close))
  return ports
}
