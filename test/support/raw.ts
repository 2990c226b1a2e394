import { connect } from 'node:net'
import { PATIENCE_MS } from './http.ts'

export type RawAnswer = { status: number; headers: Record<string, string>; body: string }

/**
 * Sends bytes unchanged over a new connection and reads the answer to its end, for requests that no HTTP client would
 * send. The request should contain `Connection: close`, as heads made by `head` do.
 */
export function exchange(url: string, ...bytes: (string | Uint8Array)[]): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const received: Uint8Array[] = []
    const socket = connect(Number(port), hostname, () => {
      for (const part of bytes) socket.write(part)
    })
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('no answer')))
    socket.on('data', (chunk: Uint8Array) => received.push(chunk))
    // A server may close the connection of a refused request that is still being sent.
    socket.on('error', (error) => received.length === 0 && reject(error))
    socket.on('end', () => socket.end())
    socket.on('close', () => resolve(parseAnswer(Buffer.concat(received).toString())))
  })
}

export function head(method: string, path: string, headers: Record<string, string | number> = {}): string {
  const lines = Object.entries({ Host: 'localhost', Connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  )
  return `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
}

function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 0)
  return { status, headers: Object.fromEntries(headers), body: text.slice(end + 4) }
}
