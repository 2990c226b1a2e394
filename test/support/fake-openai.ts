import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'

/** Fields of a Chat Completions request that the tests read. Other fields are passed through. */
const RequestBody = z.looseObject({
  model: z.string(),
  stream: z.literal(true),
  messages: z.array(z.looseObject({ role: z.string() })).min(1),
  tools: z.array(z.unknown()).optional(),
  reasoning_effort: z.string().optional(),
})

export type FakeOpenaiRequest = {
  headers: IncomingHttpHeaders
  body: z.infer<typeof RequestBody>
  /** Resolves when the answer has been sent or the client has closed the connection. */
  closed: Promise<'answered' | 'hung_up'>
}

/**
 * End of a stream. `broken` destroys the socket, `cut_off` ends the body without a finish reason, `stalled` sends
 * nothing more.
 */
type StreamEnd = 'finished' | 'broken' | 'cut_off' | 'stalled'

export type FakeOpenaiAnswer =
  | {
      text?: string[]
      /** Reasoning text, sent as `reasoning_content` as DeepSeek and vLLM do. */
      thinking?: string[]
      /** Tool calls, whose arguments arrive in fragments of three characters. */
      toolCalls?: { id: string; name: string; arguments: string }[]
      finishReason?: string
      usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens: number } }
      /**
       * Extra chunks sent after the text, for example an error object in mid-stream. Strings are sent without quotes.
       */
      chunks?: unknown[]
      /** Pause after each chunk. */
      pauseMs?: number
      end?: StreamEnd
    }
  | { status: number; message?: string; body?: string; headers?: Record<string, string> }
  /** A stream that repeats this text without an end. */
  | { endless: string }
  | 'silent'

export type FakeOpenai = { baseUrl: string; requests: FakeOpenaiRequest[]; close: () => Promise<void> }

type Handler = (request: FakeOpenaiRequest, index: number) => FakeOpenaiAnswer

/**
 * Starts a provider on a free local port that speaks the Chat Completions wire protocol. A list of answers is used in
 * order, and further requests are answered with 400, so that one model call too many fails its test.
 */
export async function startFakeOpenai(answers: FakeOpenaiAnswer[] | Handler): Promise<FakeOpenai> {
  const handler = typeof answers === 'function' ? answers : takeInOrder(answers)
  const requests: FakeOpenaiRequest[] = []
  const server = createServer((incoming, response) => {
    answer(incoming, response, (request) => handler(request, requests.push(request) - 1)).catch((error: unknown) => {
      if (!response.headersSent) sendStatus(response, { status: 400, message: `fake-openai: ${String(error)}` })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // The address of a TCP server is never a pipe name.
  const { port } = server.address() as AddressInfo
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  return { baseUrl: `http://127.0.0.1:${port}/v1`, requests, close }
}

function takeInOrder(answers: FakeOpenaiAnswer[]): Handler {
  return (_request, index) => answers[index] ?? { status: 400, message: 'fake-openai was asked once too often' }
}

async function answer(
  incoming: IncomingMessage,
  response: ServerResponse,
  take: (request: FakeOpenaiRequest) => FakeOpenaiAnswer,
): Promise<void> {
  const closed = new Promise<'answered' | 'hung_up'>((resolve) => {
    response.once('close', () => resolve(response.writableFinished ? 'answered' : 'hung_up'))
  })
  if (incoming.method !== 'POST' || incoming.url !== '/v1/chat/completions') {
    return sendStatus(response, { status: 404, message: `no ${incoming.method} ${incoming.url} here` })
  }
  const chunks: Uint8Array[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  const body = RequestBody.parse(JSON.parse(Buffer.concat(chunks).toString()))
  const fakeAnswer = take({ headers: incoming.headers, body, closed })
  if (fakeAnswer === 'silent') return
  if ('status' in fakeAnswer) return sendStatus(response, fakeAnswer)
  if ('endless' in fakeAnswer) return sendEndlessly(response, fakeAnswer.endless)
  await sendStream(response, body.model, fakeAnswer)
}

async function sendEndlessly(response: ServerResponse, text: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  while (!response.closed) await write(response, text)
}

function sendStatus(response: ServerResponse, answer: Extract<FakeOpenaiAnswer, { status: number }>): void {
  const error = { message: answer.message ?? '', type: 'fake_error', param: null, code: null }
  response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
  response.end(answer.body ?? JSON.stringify({ error }))
}

type StreamAnswer = Exclude<FakeOpenaiAnswer, 'silent' | { status: number } | { endless: string }>

async function sendStream(response: ServerResponse, model: string, answer: StreamAnswer): Promise<void> {
  const { pauseMs = 0, end = 'finished' } = answer
  const frame = { id: 'chatcmpl-fake', object: 'chat.completion.chunk', created: 1_700_000_000, model }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const deltas = toDeltas(answer).map((delta) => ({
    ...frame,
    choices: [{ index: 0, delta, finish_reason: null }],
  }))
  for (const chunk of [...deltas, ...(answer.chunks ?? [])]) {
    if (response.closed) return
    await send(response, chunk)
    if (pauseMs > 0) await sleep(pauseMs)
  }
  if (end === 'stalled') return
  if (end === 'broken') return void response.destroy()
  if (end === 'finished') await sendFinish(response, frame, answer)
  response.end()
}

async function sendFinish(response: ServerResponse, frame: object, answer: StreamAnswer): Promise<void> {
  const finish_reason = answer.finishReason ?? (answer.toolCalls ? 'tool_calls' : 'stop')
  await send(response, { ...frame, choices: [{ index: 0, delta: {}, finish_reason }] })
  await send(response, { ...frame, choices: [], usage: answer.usage ?? { prompt_tokens: 7, completion_tokens: 3 } })
  await send(response, '[DONE]')
}

function send(response: ServerResponse, chunk: unknown): Promise<void> {
  return write(response, `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`)
}

function write(response: ServerResponse, text: string): Promise<void> {
  // The write fails if the client has disconnected, which is ignored.
  return new Promise((resolve) => response.write(text, () => resolve()))
}

function toDeltas(answer: StreamAnswer): object[] {
  return [
    { role: 'assistant', content: '' },
    ...(answer.thinking ?? []).map((reasoning_content) => ({ reasoning_content })),
    ...(answer.text ?? []).map((content) => ({ content })),
    ...(answer.toolCalls ?? []).flatMap(toToolCallDeltas),
  ]
}

function toToolCallDeltas(call: { id: string; name: string; arguments: string }, index: number): object[] {
  const fragments = call.arguments.match(/[\s\S]{1,3}/g) ?? []
  return [
    { tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }] },
    ...fragments.map((fragment) => ({ tool_calls: [{ index, function: { arguments: fragment } }] })),
  ]
}
