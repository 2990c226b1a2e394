/** JSON of an answer. The service itself checks its answers against the contract in tests, so it is untyped here. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads fields of many shapes, and a wrong one fails it.
export type Json = any

/** Timeout for waiting for an expected condition. Long enough that even on a slow machine only a failure reaches it. */
export const PATIENCE_MS = 180_000
/** Pause between two checks of a condition at first. Later it is a tenth of the time waited so far, within limits. */
const FIRST_PAUSE_MS = 20
const MAX_PAUSE_MS = 100
export type Answer = { status: number; body: Json; headers: Headers }

/** Address of a service, optionally with headers for every request that select the user and the organization. */
export type Target = string | { url: string; headers: Record<string, string> }

export const addressOf = (target: Target): string => (typeof target === 'string' ? target : target.url)
export const headersOf = (target: Target): Record<string, string> => (typeof target === 'string' ? {} : target.headers)

/** Sends a request. A string body is sent unchanged, a form as multipart/form-data, anything else as JSON. */
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
      ...(body === undefined || body instanceof FormData ? {} : { 'Content-Type': 'application/json' }),
      ...headersOf(target),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isSent(body) ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.includes('json') ?? false
  return { status: answer.status, body: isJson ? JSON.parse(text) : text, headers: answer.headers }
}

const isSent = (body: unknown): body is string | FormData => typeof body === 'string' || body instanceof FormData

export const textMessage = (text: string, more: Record<string, unknown> = {}) => ({
  message: { content: [{ type: 'text', text }] },
  ...more,
})

/** Returns the id of an llmsim model by its name, from GET /v1/llm-models. */
export async function modelId(target: Target, name: string, headers: Record<string, string> = {}): Promise<string> {
  const { body } = await call(target, 'GET', '/v1/llm-models', undefined, headers)
  const model = body.data.find((candidate: Json) => candidate.model_id === name)
  if (model === undefined) throw new Error(`there is no model ${name}`)
  return model.id
}

/** Creates a session and returns its id. If agent fields are given, creates that agent for it first. */
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

/** Creates a session whose model plays an llmsim script with one step for each model call. Returns its id. */
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

/** Returns the events of a session as its event list has them. */
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

/**
 * Polls until `check` returns something other than undefined or false. Throws after the timeout, or when `check` does.
 */
export async function waitFor<T>(
  check: () => Promise<T | undefined | false>,
  what: string,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const startedAt = Date.now()
  for (;;) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    const waitedMs = Date.now() - startedAt
    if (waitedMs > timeoutMs) throw new Error(`waited ${timeoutMs} ms for ${what}`)
    const pauseMs = Math.min(Math.max(waitedMs / 10, FIRST_PAUSE_MS), MAX_PAUSE_MS)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** Waits until the session is idle. Returns its events. */
export async function waitUntilIdle(target: Target, sessionId: string): Promise<Json[]> {
  return waitFor(async () => {
    // Poll the session, because a long turn has too many events to read each time.
    const session = await call(target, 'GET', `/v1/sessions/${sessionId}`)
    if (session.body.status !== 'idle') return undefined
    const events = await listEvents(target, sessionId)
    return events.at(-1)?.type === 'session.idled' && events
  }, `${sessionId} to go idle`)
}

/** Returns a well-formed id that does not exist. */
export const unknownId = (prefix: string): string => `${prefix}_0193aaaabbbb7ccc8ddd${'0123456789ab'}`

const fieldOf = ({ body }: Answer) => (typeof body.field === 'string' ? { field: body.field } : {})

/** Expects an error: the status, and a body with nothing but a sentence, a code, and the field that is at fault. */
export function expectError(answer: Answer, status: number, sentence: RegExp | string = /./): void {
  expect({ status: answer.status, body: answer.body }).toEqual({
    status,
    body: { error: expect.any(String), code: expect.any(String), ...fieldOf(answer) },
  })
  expect(answer.body.error).toMatch(sentence)
}

/** Expects an error that says that a quota is used up. */
export function expectQuota(answer: Answer, sentence: RegExp | string): void {
  expectError(answer, 409, sentence)
  expect(answer.body.code).toBe('quota_exceeded')
}
