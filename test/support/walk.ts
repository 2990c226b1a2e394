import { endpoints } from '../../contract/index.ts'
import type { Endpoint } from '../../contract/kit/endpoint.ts'

const operationOf = ({ method, path }: Endpoint): string => `${method} ${path}`

/** Names of all operations as `METHOD /path`, so that a test's table can be checked for completeness. */
export const operations: string[] = endpoints.map(operationOf)

export function endpointOf(operation: string): Endpoint {
  const endpoint = endpoints.find((candidate) => operationOf(candidate) === operation)
  if (endpoint === undefined) throw new Error(`there is no operation ${operation}`)
  return endpoint
}

/** Throws with a sentence for each operation that a test's table lacks, and for each entry that is not an operation. */
export function expectEntryForEach(table: object, file: string, what: string, among = operations): void {
  const entries = Object.keys(table)
  const missing = among.filter((operation) => !entries.includes(operation))
  const left = entries.filter((entry) => !among.some((operation) => operation === entry))
  const sentences = [
    ...missing.map((operation) => `${file} has no entry for "${operation}": add ${what}.`),
    ...left.map((entry) => `${file} has an entry for "${entry}", which is not an operation: remove it.`),
  ]
  if (sentences.length > 0) throw new Error(sentences.join('\n'))
}

export type Sent = {
  method: string
  path: string
  headers?: Record<string, string>
  /** Request body. A string is sent unchanged, a form as multipart/form-data, anything else as JSON. */
  body?: unknown
}
/** Answer to a request. The body is decoded as latin1 to keep its bytes. The body of an event stream is not read. */
export type Received = { status: number; headers: Record<string, string>; body: string }

/** Headers that differ for each request or describe the connection. */
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

/** Returns the body and headers for fetch. For a form, fetch sets the content type with its boundary. */
function sentBody(body: unknown, headers: Record<string, string> = {}): RequestInit {
  if (body === undefined) return { headers }
  if (body instanceof FormData) return { headers, body }
  return {
    headers: { 'Content-Type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  }
}
