import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export type ProviderRequest<Body> = {
  path: string
  headers: IncomingHttpHeaders
  body: Body
  /** Resolves when the answer has been sent or the client has closed the connection. */
  closed: Promise<'answered' | 'hung_up'>
}

/**
 * End of a stream. `broken` destroys the socket, `cut_off` ends the body without a finish, `stalled` sends nothing more.
 */
type StreamEnd = 'finished' | 'broken' | 'cut_off' | 'stalled'

export type StreamOptions = {
  /**
   * Extra events sent after the content, for example an error object in mid-stream. Strings are sent without quotes.
   */
  chunks?: unknown[]
  /** Pause after each event. */
  pauseMs?: number
  end?: StreamEnd
}

export type OtherAnswer =
  | { status: number; message?: string; body?: string; headers?: Record<string, string> }
  /** A stream that repeats this text without an end. */
  | { endless: string }
  | 'silent'

/** One kind of wire protocol. Its events are JSON values. */
export type WireFormat<Body, Content> = {
  /** Path of the base URL. */
  basePath: string
  /** Path of a streamed call, with its query. */
  path: RegExp
  parse: (body: unknown) => Body
  toEvents: (content: Content, request: ProviderRequest<Body>) => object[]
  toFinish: (content: Content, request: ProviderRequest<Body>) => unknown[]
  toError: (status: number, message: string) => object
  /** Writes an event as text. */
  frame: (event: unknown) => string
}

export type ScriptedAnswer<Content> = (Content & StreamOptions) | OtherAnswer

export type FakeProvider<Body> = { baseUrl: string; requests: ProviderRequest<Body>[]; close: () => Promise<void> }

type Handler<Body, Content> = (
  request: ProviderRequest<Body>,
  index: number,
) => ScriptedAnswer<Content> | Promise<ScriptedAnswer<Content>>

/**
 * Starts a provider on a free local port. A list of answers is used in order, and further requests are answered with
 * 400, so that one model call too many fails its test.
 */
export async function startProvider<Body, Content extends object>(
  format: WireFormat<Body, Content>,
  answers: ScriptedAnswer<Content>[] | Handler<Body, Content>,
): Promise<FakeProvider<Body>> {
  const requests: ProviderRequest<Body>[] = []
  const take = typeof answers === 'function' ? answers : takeInOrder(answers)
  const server = createServer((incoming, response) => {
    answer(format, incoming, response, (request) => take(request, requests.push(request) - 1)).catch(
      (error: unknown) => {
        if (!response.headersSent)
          sendStatus(format, response, { status: 400, message: `fake provider: ${String(error)}` })
      },
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // The address of a TCP server is never a pipe name.
  const { port } = server.address() as AddressInfo
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  return { baseUrl: `http://127.0.0.1:${port}${format.basePath}`, requests, close }
}

const takeInOrder =
  <Body, Content>(answers: ScriptedAnswer<Content>[]): Handler<Body, Content> =>
  (_request, index) =>
    answers[index] ?? { status: 400, message: 'the fake provider was asked once too often' }

async function answer<Body, Content extends object>(
  format: WireFormat<Body, Content>,
  incoming: IncomingMessage,
  response: ServerResponse,
  take: (request: ProviderRequest<Body>) => ReturnType<Handler<Body, Content>>,
): Promise<void> {
  const closed = new Promise<'answered' | 'hung_up'>((resolve) => {
    response.once('close', () => resolve(response.writableFinished ? 'answered' : 'hung_up'))
  })
  const { method, url: path = '', headers } = incoming
  if (method !== 'POST' || !path.startsWith(format.basePath) || !format.path.test(path.slice(format.basePath.length))) {
    return sendStatus(format, response, { status: 404, message: `no ${method} ${path} here` })
  }
  const chunks: Uint8Array[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  const request = { path, headers, body: format.parse(JSON.parse(Buffer.concat(chunks).toString())), closed }
  const given = await take(request)
  if (given === 'silent') return
  if ('status' in given) return sendStatus(format, response, given)
  if ('endless' in given) return sendEndlessly(response, given.endless)
  await sendStream(format, response, given, request)
}

async function sendEndlessly(response: ServerResponse, text: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  while (!response.closed) await write(response, text)
}

function sendStatus<Body, Content>(
  format: WireFormat<Body, Content>,
  response: ServerResponse,
  answer: Extract<OtherAnswer, { status: number }>,
): void {
  const { status, message = '', body, headers } = answer
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(body ?? JSON.stringify(format.toError(status, message)))
}

async function sendStream<Body, Content extends object>(
  format: WireFormat<Body, Content>,
  response: ServerResponse,
  content: Content & StreamOptions,
  request: ProviderRequest<Body>,
): Promise<void> {
  const { pauseMs = 0, end = 'finished', chunks = [] } = content
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of [...format.toEvents(content, request), ...chunks]) {
    if (response.closed) return
    await write(response, format.frame(event))
    if (pauseMs > 0) await sleep(pauseMs)
  }
  if (end === 'stalled') return
  if (end === 'broken') return void response.destroy()
  if (end === 'finished') {
    for (const event of format.toFinish(content, request)) await write(response, format.frame(event))
  }
  response.end()
}

/** Writes an event of Server-Sent Events without a name. */
export const frameData = (event: unknown): string =>
  `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`

/** Writes an event of Server-Sent Events with its type as its name. */
export const frameNamed = (event: unknown): string =>
  typeof event === 'object' && event !== null && 'type' in event
    ? `event: ${event.type}\n${frameData(event)}`
    : frameData(event)

function write(response: ServerResponse, text: string): Promise<void> {
  // The write fails if the client has disconnected, which is ignored.
  return new Promise((resolve) => response.write(text, () => resolve()))
}
