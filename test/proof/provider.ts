import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { callId, type Kind, type Script, type Step } from './model.ts'

/** Text of a message whose turn plays a script. `turn` is its number in its session, `name` the history's name for it. */
export type Played = { name: string; turn: number; script: Script }

/** Model that plays the script in its turn's message, and holds where the script says so. */
export type Stage = {
  baseUrl: string
  /** Lets a held call of a turn go on, now and whenever it is asked again. */
  release(name: string, call: number): void
  close(): Promise<void>
}

type Chat = { messages: { role: string; content: unknown; tool_calls?: unknown[] }[] }

/** Starts a provider that speaks Chat Completions. */
export async function startStage(): Promise<Stage> {
  const gates = new Map<string, PromiseWithResolvers<void>>()
  const gateOf = (key: string) => {
    const gate = gates.get(key) ?? Promise.withResolvers<void>()
    gates.set(key, gate)
    return gate
  }
  const server = createServer((request, response) => {
    answer(request, response, (key) => gateOf(key).promise).catch((error: unknown) => response.destroy(error as Error))
  })
  // A connection that is closed while a process is frozen would fail that process's next call.
  server.keepAliveTimeout = 0
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // The address of a TCP server is never a pipe name.
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    release: (name, call) => gateOf(`${name}/${call}`).resolve(),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  gate: (key: string) => Promise<void>,
): Promise<void> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk)
  const { played, call, users, results } = place(JSON.parse(Buffer.concat(chunks).toString()))
  const step: Step = played.script[call - 1] ?? { says: 'Noted', calls: [], holds: false }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send = (delta: object, finish: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'stage', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    )
  send({ role: 'assistant', content: step.says })
  if (step.holds) {
    await Promise.race([gate(`${played.name}/${call}`), new Promise((resolve) => response.once('close', resolve))])
    if (response.closed) return
  }
  send({ content: ` (${users}, ${results})` })
  if (step.calls.length > 0) send({ tool_calls: step.calls.map((kind, index) => toolCall(played, call, kind, index)) })
  send({}, step.calls.length > 0 ? 'tool_calls' : 'stop')
  response.end('data: [DONE]\n\n')
}

/** Finds the turn in the conversation that the model is given, and the number of its call. */
function place({ messages }: Chat): { played: Played; call: number; users: number; results: number } {
  const texts = messages.map(({ role, content }) => (role === 'user' ? textOf(content) : ''))
  const begin = texts.findLastIndex((text) => text.startsWith('{'))
  const calls = messages.slice(begin).filter(({ role }) => role === 'assistant').length
  const results = messages.filter(({ role }) => role === 'tool').length
  return { played: JSON.parse(texts[begin] ?? ''), call: calls + 1, users: texts.filter(Boolean).length, results }
}

const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : (content as { text?: string }[]).map(({ text = '' }) => text).join('')

/** Work leaves a line in a file or a row in a database of the session, which shows if it was done twice. */
function toolCall({ turn }: Played, call: number, kind: Kind, index: number): object {
  const id = callId({ number: turn, calls: call }, index)
  const [name, args] = toolOf[kind](`${turn}/${id}`)
  return { index, id, type: 'function', function: { name, arguments: JSON.stringify(args) } }
}

const toolOf: Record<Kind, (work: string) => [name: string, args: object]> = {
  works: (work) => [
    'sql_execute',
    { database: 'works', sql: `CREATE TABLE IF NOT EXISTS works (id TEXT); INSERT INTO works VALUES ('${work}')` },
  ],
  guarded: (work) => ['bash', { command: `mkdir -p /works; echo ${work} >> /works/${work.replace('/', '-')}` }],
  asks: () => ['ask', {}],
}

/** Agent whose turns play their messages. */
export const AGENT = {
  name: 'Actor',
  system_prompt: 'Play the script.',
  capabilities: [{ ref: 'virtual_bash' }, { ref: 'session_sql_database' }],
  tools: [
    { type: 'client_side', name: 'ask', description: 'Asks.', parameters: { type: 'object', properties: {} } },
    { type: 'builtin', name: 'bash', policy: 'requires_approval' },
  ],
}
