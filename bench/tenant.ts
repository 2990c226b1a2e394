import { randomBytes } from 'node:crypto'
import type { Ask } from './hostile-turns.ts'

export const ECHO_MODEL_ID = 'model_01933b5a000070008000000000000103'
export const SCRIPT_MODEL_ID = 'model_01933b5a000070008000000000000107'

const LANES = 16
const MAX_MS = 150_000

/** An organization, and how to call the service for it. `id` is a uuid, or undefined for the one of mode none. */
export type Tenant = { baseUrl: string; headers: Record<string, string>; ask: Ask; id?: string }

export const createAsk =
  (url: string, headers: Record<string, string>): Ask =>
  async (method, path, body) => {
    const answer = await fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(MAX_MS),
    })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return answer.status === 204 ? {} : ((await answer.json()) as Record<string, unknown>)
  }

export const createTenant = (baseUrl: string, headers: Record<string, string> = {}): Tenant => ({
  baseUrl,
  headers,
  ask: createAsk(baseUrl, headers),
})

/** Registers a user that owns the given number of organizations, and returns these. */
export async function signUp(baseUrl: string, name: string, organizations: number): Promise<Tenant[]> {
  const user = { email: `${name}@example.com`, password: randomBytes(16).toString('hex'), name }
  const { access_token } = await createAsk(baseUrl, {})('POST', '/v1/auth/register', user)
  const authorization = `Bearer ${access_token}`
  const { ask } = createTenant(baseUrl, { authorization })
  const tenants: Tenant[] = []
  while (tenants.length < organizations) {
    const id = String((await ask('POST', '/v1/orgs', { name: `${name} ${tenants.length}` })).id)
    tenants.push({ ...createTenant(baseUrl, { authorization, 'x-org-id': id }), id: id.replace('org_', '') })
  }
  return tenants
}

type NewAgent = { model?: string; steps?: object[]; capabilities?: string[] }

/** Creates an agent and returns its id. With steps it plays them as a script. */
export async function addAgent({ ask }: Tenant, { model, steps, capabilities = [] }: NewAgent): Promise<string> {
  const { id } = await ask('POST', '/v1/agents', {
    name: 'Bench',
    default_model_id: steps === undefined ? model : SCRIPT_MODEL_ID,
    system_prompt: steps === undefined ? 'Help.' : `\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``,
    capabilities: capabilities.map((ref) => ({ ref })),
  })
  return String(id)
}

/** Adds a provider at a port of this machine with one model, and returns an agent with it. */
export async function addAgentOfStub(tenant: Tenant, port: number, model: string): Promise<string> {
  const { id } = await tenant.ask('POST', '/v1/llm-providers', {
    name: `stub ${model}`,
    provider_type: 'openai_completions',
    base_url: `http://127.0.0.1:${port}/v1`,
    api_key: 'sk-bench',
  })
  const body = { model_id: model, display_name: model }
  const added = await tenant.ask('POST', `/v1/llm-providers/${id}/models`, body)
  return addAgent(tenant, { model: String(added.id), capabilities: ['test_math'] })
}

export const addSession = async ({ ask }: Tenant, agentId: string): Promise<string> =>
  String((await ask('POST', '/v1/sessions', { agent_id: agentId })).id)

export const say = ({ ask }: Tenant, sessionId: string): Promise<unknown> =>
  ask('POST', `/v1/sessions/${sessionId}/messages`, { message: { content: [{ type: 'text', text: 'Hello' }] } })

/** Does the work for each item, 16 at a time. Begins no more after `mostMs`. Returns the results, and counts failures. */
export async function forEach<Item, Result>(
  items: Item[],
  work: (item: Item) => Promise<Result>,
  mostMs = MAX_MS,
): Promise<{ done: Result[]; failed: Map<string, number> }> {
  const until = performance.now() + mostMs
  const left = items.values()
  const done: Result[] = []
  const failed = new Map<string, number>()
  const lane = async () => {
    for (const item of left) {
      if (performance.now() > until) return
      try {
        done.push(await work(item))
      } catch (error) {
        const reason = String(error).replace(/[0-9a-f-]{32,36}/g, '…')
        failed.set(reason, (failed.get(reason) ?? 0) + 1)
      }
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return { done, failed }
}
