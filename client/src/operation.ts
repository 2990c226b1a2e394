import type { Connection } from './connection.ts'
import { readApiError } from './errors.ts'
import { type FollowOptions, follow } from './follow.ts'

export type CallOptions = {
  signal?: AbortSignal | undefined
  headers?: Record<string, string> | undefined
  /** Makes the request of a creating operation repeatable: the same key gets the first answer. */
  idempotencyKey?: string | undefined
}
export type StreamOptions = Pick<FollowOptions, 'signal' | 'onConnected'>

type Data = { body?: unknown; path?: unknown; query?: unknown }
/** Fields of a body, or `body` if it is a text or a file. */
type Fields<B> = B extends string | Blob ? { body: B } : B
type Part<T> = [NonNullable<T>] extends [never] ? unknown : NonNullable<T>
/** Parameters of the path and the query, and fields of the body, in one object, named as in the API reference. */
export type Arguments<D extends Data> = Part<D['path']> & Part<D['query']> & Part<Fields<D['body']>>

type Given<A, O> = Record<never, never> extends A ? [args?: A, options?: O] : [args: A, options?: O]
export type Operation<D extends Data, R> = (...given: Given<Arguments<D>, CallOptions>) => Promise<R>
export type Stream<D extends Data, E> = (
  ...given: Given<Arguments<D>, StreamOptions>
) => AsyncGenerator<E, void, undefined>

/** Method, path, names in the query, and type of the body: JSON by default, or `events` for a stream. */
export type Row = readonly [method: string, path: string, query?: string, type?: string]
type Table = Record<string, Record<string, Row>>
type Named = Record<string, unknown>

/** Returns the functions of a table of operations. Their type is generated beside the table. */
export function createOperations(table: Table, connection: Connection): unknown {
  const functionOf = (row: Row) =>
    row[3] === 'events'
      ? (args: Named = {}, options: StreamOptions = {}) => streamed(connection, row, args, options)
      : (args: Named = {}, options: CallOptions = {}) => call(connection, row, args, options)
  const groups = Object.entries(table).map(([name, rows]) => [
    name,
    Object.fromEntries(Object.entries(rows).map(([verb, row]) => [verb, functionOf(row)])),
  ])
  return Object.fromEntries(groups)
}

async function call(connection: Connection, row: Row, args: Named, options: CallOptions): Promise<unknown> {
  const response = await connection.send(requestOf(connection, row, args, options))
  if (!response.ok) throw await readApiError(response)
  const type = response.headers.get('Content-Type') ?? ''
  if (response.status === 204 || type === '') return undefined
  if (type.startsWith('application/json')) return response.json()
  return type.startsWith('text/') ? response.text() : response.blob()
}

function streamed(connection: Connection, row: Row, args: Named, options: StreamOptions): AsyncGenerator<unknown> {
  const open = (last: string | undefined, signal: AbortSignal) => {
    const headers = { Accept: 'text/event-stream' }
    return connection.send(requestOf(connection, row, last ? { ...args, since_id: last } : args, { signal, headers }))
  }
  return follow({ ...options, open, silenceMs: connection.silenceMs })
}

function requestOf(
  connection: Connection,
  [method, path, names = '', type = 'application/json']: Row,
  args: Named,
  { signal, headers = {}, idempotencyKey }: CallOptions,
): Request {
  const rest = { ...args }
  const take = (name: string): unknown => {
    const value = rest[name]
    delete rest[name]
    return value
  }
  const filled = path.replace(/\{(\w+)(\*?)\}/g, (_, name: string, many: string) => {
    const value = take(name)
    if (!['string', 'number'].includes(typeof value) || value === '') throw new TypeError(`${name}: is required`)
    const encoded = encodeURIComponent(String(value))
    return many ? encoded.replaceAll('%2F', '/') : encoded
  })
  const query = new URLSearchParams()
  for (const name of names.split(' ').filter(Boolean)) {
    for (const value of [take(name) ?? []].flat()) query.append(name, String(value))
  }
  const sent = new Headers(headers)
  if (idempotencyKey !== undefined) sent.set('Idempotency-Key', idempotencyKey)
  const body = method === 'GET' ? undefined : bodyOf(rest, type, sent)
  const address = query.size > 0 ? `${filled}?${query}` : filled
  const init = { method, headers: Object.fromEntries(sent), ...(body === undefined ? {} : { body }) }
  return connection.request(address, signal ? { ...init, signal } : init)
}

function bodyOf(fields: Named, type: string, headers: Headers): RequestInit['body'] {
  const { body } = fields
  if (body instanceof Blob) return body
  if (type === 'multipart/form-data') {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) {
      if (value !== undefined) form.append(name, value instanceof Blob ? value : String(value))
    }
    return form
  }
  if (Object.keys(fields).length === 0) return undefined
  headers.set('Content-Type', headers.get('Content-Type') ?? type)
  return typeof body === 'string' ? body : JSON.stringify(fields)
}
