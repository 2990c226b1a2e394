import { createServer, type ServerResponse } from 'node:http'
import { serveParent } from './child.ts'

/**
 * Number of tokens of an answer, and the pause before each in ms. Without a pause all are sent at once. A stamped token
 * says when it was sent, so that a client can tell how long it took.
 */
export type Pace = { tokens: number; pauseMs: number; isStamped?: boolean }

/** All tokens differ, so that a lost, repeated or misplaced token shows in the text. */
const tokenAt = (index: number): string => `w${index} `
/** Returns the text of an answer with that many tokens. */
export const textOf = (tokens: number): string => Array.from({ length: tokens }, (_, index) => tokenAt(index)).join('')

const frame = (more: object): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'bench', ...more })}\n\n`
export const deltaFrame = (delta: object): string => frame({ choices: [{ index: 0, delta, finish_reason: null }] })
const HEAD = deltaFrame({ role: 'assistant', content: '' })
const FRAMES = Array.from({ length: 1000 }, (_, index) => deltaFrame({ content: tokenAt(index) }))
/** Token that has been sent now: `<index>@<ms since 1970>`. */
export const stampedAt = (index: number): string =>
  `${index}@${(performance.timeOrigin + performance.now()).toFixed(1)} `
const END = [
  frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  frame({ choices: [], usage: { prompt_tokens: 20, completion_tokens: 20 } }),
  'data: [DONE]\n\n',
].join('')

/** Sends what is due by the clock, so that a busy machine makes the tokens come in larger groups, not later. */
export function answer(response: ServerResponse, { tokens, pauseMs, isStamped = false }: Pace): void {
  const framesOf = (from: number, to: number) =>
    isStamped
      ? Array.from({ length: to - from }, (_, index) => deltaFrame({ content: stampedAt(from + index) }))
      : FRAMES.slice(from, to)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  if (pauseMs === 0) return void response.end(HEAD + FRAMES.slice(0, tokens).join('') + END)
  response.write(HEAD)
  const startedAt = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    const due = Math.min(tokens, Math.floor((performance.now() - startedAt) / pauseMs))
    if (due > sent) response.write(framesOf(sent, due).join(''))
    sent = due
    if (sent === tokens) response.end(END)
  }, pauseMs)
  response.once('close', () => clearInterval(timer))
}

/**
 * Model provider that speaks streamed Chat Completions. Each message from its parent is the pace from then on, and is
 * answered with the number of calls since the last one.
 */
async function main(port: number): Promise<void> {
  let pace: Pace = { tokens: 20, pauseMs: 0 }
  let calls = 0
  const server = createServer((request, response) => {
    request.resume()
    request.once('end', () => {
      calls++
      answer(response, pace)
    })
  })
  server.keepAliveTimeout = 120_000
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  serveParent(
    'ready',
    async (question) => {
      const answered = calls
      // The parent is the bench.
      pace = question as Pace
      calls = 0
      return answered
    },
    async () => server.closeAllConnections(),
  )
}

if (import.meta.main) await main(Number(process.argv[2]))
