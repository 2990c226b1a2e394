/** Answers are what the contract says, which the service checks itself in tests; here they are plain JSON. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads fields of many shapes, and a wrong one fails it.
export type Json = any

/** How long a test waits for what has to happen. Only what never happens takes so long, on however slow a machine. */
export const PATIENCE_MS = 180_000
export type Answer = { status: number; body: Json; headers: Headers }

/** The address of a service, or with headers that go with each request there: as whom, in which organization. */
export type Target = string | { url: string; headers: Record<string, string> }

export const addressOf = (target: Target): string => (typeof target === 'string' ? target : target.url)
export const headersOf = (target: Target): Record<string, string> => (typeof target === 'string' ? {} : target.headers)

/** A string body is sent as it is, anything else as JSON. */
export async function call(
  target: Target,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await fetch(addressOf(target) + path, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headersOf(target),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.includes('json') ?? false
  return { status: answer.status, body: isJson ? JSON.parse(text) : text, headers: answer.headers }
}

export const textMessage = (text: string, more: Record<string, unknown> = {}) => ({
  message: { content: [{ type: 'text', text }] },
  ...more,
})

/** llmsim models by name, as GET /v1/llm-models lists them. */
export async function modelId(target: Target, name: string, headers: Record<string, string> = {}): Promise<string> {
  const { body } = await call(target, 'GET', '/v1/llm-models', undefined, headers)
  const model = body.data.find((candidate: Json) => candidate.model_id === name)
  if (model === undefined) throw new Error(`there is no model ${name}`)
  return model.id
}

/** A session, of an agent when given its fields; returns its id. */
export async function createSession(
  target: Target,
  agent?: Record<string, unknown>,
  session: object = {},
  headers: Record<string, string> = {},
): Promise<string> {
  let agent_id: string | undefined
  if (agent !== undefined) {
    const created = await call(
      target,
      'POST',
      '/v1/agents',
      { name: 'Test agent', system_prompt: 'Help.', ...agent },
      headers,
    )
    if (created.status !== 201) throw new Error(`agent: ${created.status} ${JSON.stringify(created.body)}`)
    agent_id = created.body.id
  }
  const { status, body } = await call(target, 'POST', '/v1/sessions', { agent_id, ...session }, headers)
  if (status !== 201) throw new Error(`session: ${status} ${JSON.stringify(body)}`)
  return body.id
}

/** A session whose model is an llmsim script: one step for each model call. */
export async function createScriptedSession(
  target: Target,
  steps: object[],
  agent: object = {},
  session: object = {},
  headers: Record<string, string> = {},
): Promise<string> {
  const system_prompt = `Play the script.\n\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``
  return createSession(
    target,
    { system_prompt, default_model_id: await modelId(target, 'llmsim-script', headers), ...agent },
    session,
    headers,
  )
}

/** All events of a session, as the list tells them. */
export async function listEvents(
  target: Target,
  sessionId: string,
  query = '',
  headers: Record<string, string> = {},
): Promise<Json[]> {
  const { status, body } = await call(target, 'GET', `/v1/sessions/${sessionId}/events${query}`, undefined, headers)
  if (status !== 200) throw new Error(`events: ${status} ${JSON.stringify(body)}`)
  return body.data
}

/** Polls until `check` gives something other than undefined or false; fails loudly, with the last error, when it never does. */
export async function waitFor<T>(
  check: () => Promise<T | undefined | false>,
  what: string,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const until = Date.now() + timeoutMs
  for (;;) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    if (Date.now() > until) throw new Error(`waited ${timeoutMs} ms for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

/** Waits until the session has nothing left to do; returns its events. */
export async function waitUntilIdle(target: Target, sessionId: string): Promise<Json[]> {
  return waitFor(async () => {
    // The events of a long turn are too many to be read again and again.
    const session = await call(target, 'GET', `/v1/sessions/${sessionId}`)
    if (session.body.status !== 'idle') return undefined
    const events = await listEvents(target, sessionId)
    return events.at(-1)?.type === 'session.idled' && events
  }, `${sessionId} to go idle`)
}

/** An id of the right form that nothing has. */
export const unknownId = (prefix: string): string => `${prefix}_0193aaaabbbb7ccc8ddd${'0123456789ab'}`

/** Every error of the service: the status, and a body that is a sentence and nothing else. */
export function expectError(answer: Answer, status: number, sentence: RegExp | string = /./): void {
  expect({ status: answer.status, body: answer.body }).toEqual({ status, body: { error: expect.any(String) } })
  expect(answer.body.error).toMatch(sentence)
}
