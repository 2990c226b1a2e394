import { createMcpHandler } from '@modelcontextprotocol/server'
import type { Context } from 'koa'
import { endWithin, writeInPieces } from '../../http/back-pressure.ts'
import { RequestError } from '../../http/errors.ts'
import type { OfferedAgent } from './agent-enum.ts'
import type { Face } from './face.ts'
import { createFaceServer } from './server.ts'

/** Interval between comments that keep the connection of a waiting client open. */
const KEEP_ALIVE_MS = 10_000
/** Time that a client has to take the rest of an answer. */
const FLUSH_MS = 5000
/** Headers that the library reads, besides the names of the protocol's own. Credentials are not among them. */
const READ_HEADERS = ['accept', 'content-type']

/** Answers one parsed message of the protocol, by a server that lives as long as the request. */
export async function answerMessage(
  face: Face,
  message: unknown,
  { agents, version }: { agents: OfferedAgent[]; version: string },
): Promise<void> {
  const { ctx } = face
  // A batch could wait a hundred times at once.
  if (Array.isArray(message)) throw new RequestError(400, 'Send one message at a time, not a batch')
  let problem: Error | undefined
  const handler = createMcpHandler(() => createFaceServer(face, agents, version), {
    keepAliveMs: KEEP_ALIVE_MS,
    // A call may wait for longer than proxies wait for an answer, so its answer is always a stream.
    responseMode: 'sse',
    onerror: (error) => {
      problem = error
    },
  })
  const response = await handler.fetch(requestOf(ctx), { parsedBody: message })
  if (ctx.res.closed) {
    ctx.respond = false
    return
  }
  if (response.status === 500) throw problem ?? new Error('The library has failed and does not say why.')
  await send(ctx, response)
}

/** Returns the request for the library, whose body is passed beside it. */
function requestOf({ req, res }: Context): Request {
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  if (res.closed) gone.abort()
  const headers = new Headers()
  for (const [name, values = []] of Object.entries(req.headersDistinct)) {
    if (READ_HEADERS.includes(name) || name.startsWith('mcp-')) headers.set(name, values.join(', '))
  }
  return new Request('http://localhost/v1/mcp', { method: 'POST', headers, signal: gone.signal })
}

async function send(ctx: Context, { status, headers, body }: Response): Promise<void> {
  const { res } = ctx
  const sent = [...headers].filter(([name]) => name !== 'connection')
  const refusal = status >= 400 ? [['x-should-retry', 'false']] : []
  ctx.respond = false
  res.writeHead(status, Object.fromEntries([...sent, ...refusal]))
  res.flushHeaders()
  try {
    // Leaving the loop cancels the stream, and with it the wait of the tool.
    for await (const chunk of body ?? []) if (!(await writeInPieces(res, chunk))) break
  } finally {
    endWithin(res, FLUSH_MS)
  }
}
