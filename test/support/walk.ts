import type { Endpoint } from '../../contract/endpoint.ts'
import { endpoints } from '../../contract/index.ts'

const operationOf = ({ method, path }: Endpoint): string => `${method} ${path}`

/** All there are, as `METHOD /path`: so a test's table of them names each. */
export const operations: string[] = endpoints.map(operationOf)

export function endpointOf(operation: string): Endpoint {
  const endpoint = endpoints.find((candidate) => operationOf(candidate) === operation)
  if (endpoint === undefined) throw new Error(`there is no operation ${operation}`)
  return endpoint
}

/** What a test has to say about each operation: a new one fails it with a sentence that tells what is missing. */
export function expectEntryForEach(table: object, file: string, what: string, among = operations): void {
  const entries = Object.keys(table)
  const missing = among.filter((operation) => !entries.includes(operation))
  const left = entries.filter((entry) => !among.some((operation) => operation === entry))
  const sentences = [
    ...missing.map((operation) => `${file} has no entry for "${operation}": add ${what}.`),
    ...left.map((entry) => `${file} has an entry for "${entry}", which is no operation: remove it.`),
  ]
  if (sentences.length > 0) throw new Error(sentences.join('\n'))
}

export type Sent = {
  method: string
  path: string
  headers?: Record<string, string>
  /** A string is sent as it is, a form as multipart/form-data, anything else as JSON. */
  body?: unknown
}
/** The body byte by byte (latin1), so that a file stays what it is; that of an event stream is not read. */
export type Received = { status: number; headers: Record<string, string>; body: string }

/** Different for each request, or about the connection. */
const PASSING = ['date', 'x-request-id', 'connection', 'keep-alive']

export async function send(url: string, { method, path, headers, body }: Sent): Promise<Received> {
  const stop = new AbortController()
  const answer = await fetch(url + path, {
    method,
    redirect: 'manual',
    signal: stop.signal,
    ...sentBody(body, headers),
  })
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const bytes = isStream ? Buffer.alloc(0) : Buffer.from(await answer.arrayBuffer())
  if (isStream) stop.abort()
  const kept = [...answer.headers].filter(([name]) => !PASSING.includes(name))
  return { status: answer.status, headers: Object.fromEntries(kept), body: bytes.toString('latin1') }
}

/** A form's type has its boundary, so it is left to fetch. */
function sentBody(body: unknown, headers: Record<string, string> = {}): RequestInit {
  if (body === undefined) return { headers }
  if (body instanceof FormData) return { headers, body }
  return {
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  }
}
