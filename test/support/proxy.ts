import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

/** Connection on which a chunk came. */
export type Crossing = {
  /** Port from which the proxy speaks to the server. */
  port: number
  hangUp(): void
  /** Adds bytes to the server's next answer, and closes the connection after them. */
  hangUpAfterAnswer(last: Buffer): void
}
/** Decides about a chunk: one for which it returns false is not forwarded. */
export type Interference = (crossing: Crossing) => boolean | Promise<boolean>

/** TCP proxy to a server. A test can cut the connection while the server keeps running. */
export type Proxy = {
  address: string
  /** Closes every connection and refuses new ones until `mend`. */
  cut(): void
  /** Stops forwarding data on existing connections, as if a host had died. New connections work. */
  freeze(): void
  /** Interferes with the nth chunk that clients send from now on, whichever connection it is on. */
  interfere(nth: number, how: Interference): void
  mend(): void
  close(): Promise<void>
}

/** Passes a number of bytes on, then ends. */
function endAfter(bytes: number): Transform {
  let left = bytes
  return new Transform({
    transform(chunk, _encoding, done) {
      const kept = chunk.subarray(0, left)
      left -= kept.length
      done(null, kept)
      if (left === 0) this.end()
    },
  })
}

/**
 * Starts a proxy to `host:port`. With `lifetime`, each connection is cut once so many bytes have come back, whatever they
 * are in the middle of; it is called for each connection.
 */
export async function startProxy(target: string, lifetime = () => Number.POSITIVE_INFINITY): Promise<Proxy> {
  const { hostname, port } = new URL(`tcp://${target}`)
  const sockets = new Set<Socket>()
  let isCut = false
  let chunksLeft = 0
  let interference: Interference = () => true
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
    const limit = endAfter(lifetime())
    const crossing: Crossing = {
      get port() {
        return upstream.localPort ?? 0
      },
      hangUp: end,
      hangUpAfterAnswer: (last) => {
        upstream
          .unpipe(limit)
          .once('data', (answer: Buffer) => socket.end(Buffer.concat([answer, last])))
          .resume()
      },
    }
    const gate = new Transform({
      transform: async (chunk, _, done) => {
        const isForwarded = --chunksLeft !== 0 || (await interference(crossing))
        done(null, isForwarded ? chunk : undefined)
      },
    })
    socket.pipe(gate).pipe(upstream).pipe(limit).pipe(socket)
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
    interfere: (nth, how) => {
      chunksLeft = nth
      interference = how
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
