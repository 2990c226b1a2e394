import { createServer, request, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import pg from 'pg'

/**
 * Agent server on an engine for workflows, `dbos` or `restate`. A turn is a workflow with two steps, the model's answer
 * and its record. Deltas are only in Redis: a stream to read again, and a channel for the reader of the turn.
 * `POST /sessions/<id>` begins a turn, and streams its deltas until the end.
 */
const [engine = 'dbos'] = process.argv.slice(2)
const variable = (name: string): string => process.env[name] ?? ''
const requirePeer = createRequire(variable('PEER_PACKAGES'))

type Message = { role: string; content: string }
type Start = (session: string, content: string) => Promise<void>

const redis = new Redis(variable('REDIS_URL'))
const subscriber = new Redis(variable('REDIS_URL'))
const readers = new Map<string, ServerResponse>()
subscriber.on('message', (session: string, delta: string) => {
  const reader = readers.get(session)
  if (delta === '') reader?.end()
  else reader?.write(`data: ${JSON.stringify({ delta })}\n\n`)
})

const publish = (session: string, delta: string): Promise<unknown> =>
  redis.pipeline().xadd(session, '*', 'delta', delta).publish(session, delta).exec()

/** Asks the model and publishes its tokens, one message for each chunk that arrives. Resolves with the whole text. */
function ask(session: string, messages: Message[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request(`${variable('PROVIDER_URL')}/chat/completions`, { method: 'POST', headers }, (answer) => {
      let text = ''
      let rest = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop() ?? ''
        const delta = lines.map(readToken).join('')
        text += delta
        if (delta !== '') void publish(session, delta)
      })
      answer.on('end', () => resolve(text))
      answer.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ model: 'bench', stream: true, messages }))
  })
}

function readToken(line: string): string {
  if (!line.startsWith('data: {')) return ''
  const chunk = JSON.parse(line.slice(6)) as { choices: { delta: { content?: string } }[] }
  return chunk.choices[0]?.delta.content ?? ''
}

/** A workflow of DBOS; the conversation is a table of the same Postgres. */
async function startDbos(): Promise<Start> {
  const { DBOS } = requirePeer('@dbos-inc/dbos-sdk')
  const pool = new pg.Pool({ connectionString: variable('DATABASE_URL'), max: 20 })
  await pool.query(`CREATE TABLE messages (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session text NOT NULL, role text NOT NULL, content text NOT NULL);
    CREATE INDEX ON messages (session, place)`)
  const answer = async (session: string, content: string) => {
    const text = 'SELECT role, content FROM messages WHERE session = $1 ORDER BY place'
    const { rows } = await pool.query<Message>({ name: 'read', text, values: [session] })
    return ask(session, [...rows, { role: 'user', content }])
  }
  const record = async (session: string, content: string, answered: string) => {
    const text = "INSERT INTO messages (session, role, content) VALUES ($1, 'user', $2), ($1, 'assistant', $3)"
    await pool.query({ name: 'record', text, values: [session, content, answered] })
    await publish(session, '')
  }
  const turn = DBOS.registerWorkflow(
    async (session: string, content: string) => {
      const answered = await DBOS.runStep(() => answer(session, content), { name: 'answer' })
      await DBOS.runStep(() => record(session, content, answered), { name: 'record' })
    },
    { name: 'turn' },
  )
  const systemDatabaseUrl = variable('DATABASE_URL')
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl, systemDatabasePoolSize: 20, logLevel: 'warn' })
  await DBOS.launch()
  return async (session, content) => void (await DBOS.startWorkflow(turn)(session, content))
}

/** The part of Restate's context that a turn uses. */
type Context = {
  key: string
  get(name: string): Promise<Message[] | null>
  set(name: string, value: Message[]): void
  run<T>(name: string, action: () => Promise<T>): Promise<T>
}

/** A virtual object of Restate for each session; its state is the conversation. */
async function startRestate(): Promise<Start> {
  const restate = requirePeer('@restatedev/restate-sdk')
  const turn = async (context: Context, content: string) => {
    const messages = [...((await context.get('messages')) ?? []), { role: 'user', content }]
    const answered = await context.run('answer', () => ask(context.key, messages))
    context.set('messages', [...messages, { role: 'assistant', content: answered }])
    await context.run('end', async () => void (await publish(context.key, '')))
  }
  const services = [restate.object({ name: 'session', handlers: { turn } })]
  const port = Number(variable('HANDLER_PORT'))
  const handlers = createHttp2Server(restate.createEndpointHandler({ services }))
  await new Promise<void>((resolve) => handlers.listen(port, '127.0.0.1', resolve))
  await post(`${variable('RESTATE_ADMIN')}/deployments`, { uri: `http://127.0.0.1:${port}` })
  return (session, content) => post(`${variable('RESTATE_INGRESS')}/session/${session}/turn/send`, content)
}

async function post(url: string, body: unknown): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`)
}

const start = await (engine === 'dbos' ? startDbos() : startRestate())

const server = createServer(async (asked, response) => {
  const session = asked.url?.split('/')[2]
  asked.resume()
  if (session === undefined) return void response.end('ready')
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  readers.set(session, response)
  response.on('close', () => {
    readers.delete(session)
    void subscriber.unsubscribe(session)
  })
  await subscriber.subscribe(session)
  await start(session, 'Hello').catch((error) => response.destroy(error))
})
server.listen(Number(variable('PORT')), '127.0.0.1')
