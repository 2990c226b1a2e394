import { connect, type Socket } from 'node:net'

/** Set of open streams; `received` counts the events that came on all of them. */
export type Clients = {
  opened: number
  received(): number
  until(count: number, timeoutMs: number): Promise<void>
  close(): void
}

const OPENED_AT_ONCE = 50
const MARK = Buffer.from('\nid: ')
const CONNECTED = Buffer.from('event: connected\n')

/**
 * Opens one stream for each path, on a socket of its own, and counts events. Does not parse them, which would measure
 * the client.
 */
export async function openClients(
  port: number,
  paths: string[],
  onText?: (text: string, at: number) => void,
  headers: Record<string, string> = {},
): Promise<Clients> {
  const sockets: Socket[] = []
  let received = 0
  let wake = () => {}
  const count = (chunk: Buffer) => {
    onText?.(chunk.toString('latin1'), performance.timeOrigin + performance.now())
    received += countMarks(chunk)
    wake()
  }
  const left = [...paths]
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const lane = async () => {
    for (let path = left.pop(); path !== undefined; path = left.pop()) {
      const socket = await open(port, path, count, head)
      if (socket !== undefined) sockets.push(socket)
    }
  }
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, lane))
  return {
    opened: sockets.length,
    received: () => received,
    until: (wanted, timeoutMs) =>
      new Promise((resolve, reject) => {
        const fail = () => reject(new Error(`${received} of ${wanted} events came within ${timeoutMs} ms`))
        const timer = setTimeout(fail, timeoutMs)
        wake = () => {
          if (received < wanted) return
          clearTimeout(timer)
          resolve()
        }
        wake()
      }),
    close: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

function countMarks(chunk: Buffer): number {
  let marks = 0
  for (let at = chunk.indexOf(MARK); at >= 0; at = chunk.indexOf(MARK, at + MARK.length)) marks++
  return marks
}

/** Opens a stream. Resolves when it has received `connected`, with undefined when it is refused. */
function open(port: number, path: string, count: (chunk: Buffer) => void, head: string[]): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    // The network may split a mark between two chunks.
    let rest = Buffer.alloc(0)
    socket.on('error', reject)
    socket.once('data', (chunk: Buffer) => {
      if (chunk.toString('latin1', 0, 12) === 'HTTP/1.1 200') return
      resolve(undefined)
      socket.destroy()
    })
    socket.on('data', (chunk: Buffer) => {
      if (chunk.includes(CONNECTED)) resolve(socket)
      const whole = Buffer.concat([rest, chunk])
      rest = whole.subarray(1 - MARK.length)
      count(whole)
    })
    socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n${head.join('')}\r\n`)
  })
}
