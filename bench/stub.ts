import { createServer, type ServerResponse } from 'node:http'
import { serveParent } from './child.ts'
import { answer, deltaFrame } from './provider.ts'

/**
 * Way in which the stub answers, by the model's name. `quick`: 20 tokens at once. `silent`: the head of an answer and
 * then nothing. `drip`: a token each 30 s. `calls`: 30,000 tool calls in one line. `endless`: 4 kB chunks without end.
 */
export type StubModel = 'quick' | 'silent' | 'drip' | 'calls' | 'endless'

const CALLS = 30_000
const CHUNK = deltaFrame({ content: 'endless '.repeat(480) })
/** Time after which an endless answer ends. */
const ENDLESS_MS = 60_000

const respond: Record<StubModel, (response: ServerResponse) => void> = {
  quick: (response) => answer(response, { tokens: 20, pauseMs: 0 }),
  silent: (response) => answer(response, { tokens: 1, pauseMs: 3_600_000 }),
  drip: (response) => answer(response, { tokens: 1000, pauseMs: 30_000 }),
  calls: (response) => {
    const tool_calls = Array.from({ length: CALLS }, (_, index) => ({
      index,
      id: `call_${index}`,
      type: 'function',
      function: { name: 'multiply', arguments: '{"a":6,"b":7,"why":"a text that makes the line longer"}' },
    }))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`${deltaFrame({ role: 'assistant', tool_calls })}data: [DONE]\n\n`)
  },
  endless: (response) => {
    const until = performance.now() + ENDLESS_MS
    const write = () => {
      while (!response.destroyed && performance.now() < until) if (!response.write(CHUNK)) return
      response.end()
    }
    response.on('drain', write)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    write()
  },
}

/**
 * Host whose model provider keeps the service waiting or busy, and whose other paths never answer. Answers each message
 * with the number of calls and requests that are open.
 */
async function main(port: number): Promise<void> {
  let open = 0
  const server = createServer((request, response) => {
    open++
    response.once('close', () => open--)
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => {
      text += chunk
    })
    request.once('end', () => {
      // Anything else is left without an answer.
      const model = request.method === 'POST' ? /"model":"(\w+)"/.exec(text)?.[1] : undefined
      respond[model as StubModel]?.(response)
    })
  })
  server.keepAliveTimeout = 120_000
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', 4096, resolve))
  serveParent(
    'ready',
    async () => open,
    async () => server.closeAllConnections(),
  )
}

await main(Number(process.argv[2]))
