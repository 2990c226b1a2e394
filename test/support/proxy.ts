import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

/** A way to a server that a test can cut while the server goes on. */
export type Proxy = {
  address: string
  /** Breaks every connection and refuses new ones until `mend`. */
  cut(): void
  /** Passes nothing on on the connections there are, as if a host had died; new ones work. */
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
  // A TCP server's address is never a pipe's name.
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
