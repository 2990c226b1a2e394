import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

/** TCP proxy to a server. A test can cut the connection while the server keeps running. */
export type Proxy = {
  address: string
  /** Closes every connection and refuses new ones until `mend`. */
  cut(): void
  /** Stops forwarding data on existing connections, as if a host had died. New connections work. */
  freeze(): void
  mend(): void
  close(): Promise<void>
}

export async function startProxy(target: string): Promise<Proxy> {
  const { hostname, port } = new URL(`tcp://${target}`)
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((socket) => {
    if (isCut) return void socket.destroy()
    const upstream = connect(Number(port), hostname)
    const end = () => {
      socket.destroy()
      upstream.destroy()
      sockets.delete(socket)
    }
    sockets.add(socket)
    for (const side of [socket, upstream]) side.on('error', end).on('close', end)
    socket.pipe(upstream).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // The address of a TCP server is never a pipe name.
  const own = server.address() as AddressInfo
  const breakAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    address: `127.0.0.1:${own.port}`,
    cut: () => {
      isCut = true
      breakAll()
    },
    freeze: () => {
      for (const socket of sockets) socket.unpipe().pause()
    },
    mend: () => {
      isCut = false
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      breakAll()
      await closed
    },
  }
}
