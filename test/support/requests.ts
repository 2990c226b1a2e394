import { newUuid } from '../../domain/kit/ids.ts'
import { FILE, type Ids } from './belongings.ts'
import { formOf, PIXEL } from './pictures.ts'
import type { Sent } from './walk.ts'
import { skillMd, skillZip } from './zip.ts'

/** One way to call an operation. The path is filled in from the ids in `path`. */
type Request = {
  path?: Ids
  query?: Record<string, string>
  body?: unknown
  headers?: Record<string, string>
  /** Set if the request succeeds even when the ids do not exist, such as a filtered list or a caller-chosen id. */
  succeeds?: true
  /** Set if the request creates something, so that no two answers are equal. */
  creates?: true
}

const asMessage = (turn: string): string => turn.replace('turn_', 'message_')
const list = (query: Record<string, string> = {}): Request => ({ query, succeeds: true })
const message = { content: [{ type: 'text', text: 'Hello' }] }
/** A period of usage that has now in it. Two answers for the default period differ when an hour ends between them. */
export const USAGE_PERIOD = {
  from: new Date(Date.now() - 86_400_000).toISOString(),
  to: new Date(Date.now() + 86_400_000).toISOString(),
}
const agent = { name: 'An agent', system_prompt: 'Help.' }

/**
 * Requests for each operation, covering every place that takes an id: path, query, body and headers. `own` has the
 * caller's ids. `other` has ids of another organization, or ids that nothing has. Where several ids belong together,
 * each is also sent alone with the caller's other ids.
 */
export const requests: Record<string, (own: Ids, other: Ids) => Request[]> = {
  'GET /health': () => [list()],
  'GET /health/ready': () => [list()],
  'GET /health/started': () => [list()],
  'GET /v1/auth/config': () => [list()],
  'POST /v1/auth/login': (_, { email }) => [{ body: { email, password: 'none of theirs' } }],
  'POST /v1/auth/register': () => [{ body: { email: 'no e-mail', password: '', name: '' } }],
  'POST /v1/auth/refresh': () => [{ body: { refresh_token: 'none' } }],
  'POST /v1/auth/logout': () => [{ succeeds: true }],
  'GET /v1/auth/me': () => [list()],
  'GET /v1/auth/oauth/{provider}': () => [{}],
  'GET /v1/auth/callback/{provider}': () => [{}],
  'GET /v1/mcp-sign-in/callback': () => [{}],
  'GET /v1/auth/api-keys': () => [list()],
  'POST /v1/auth/api-keys': (_, other) => [
    { body: { name: 'A key' }, headers: { 'Idempotency-Key': other.idempotencyKey }, succeeds: true, creates: true },
  ],
  'DELETE /v1/auth/api-keys/{key_id}': (_, other) => [{ path: other }],

  'GET /v1/orgs': () => [list()],
  'POST /v1/orgs': () => [{ body: { name: 'An organization' }, succeeds: true, creates: true }],
  'GET /v1/orgs/{org}': (_, other) => [{ path: other }],
  'PATCH /v1/orgs/{org}': (_, other) => [
    { path: other, body: { name: 'Taken' } },
    { path: other, body: {} },
  ],
  'DELETE /v1/orgs/{org}': (_, other) => [{ path: other }],
  'GET /v1/orgs/{org}/members': (_, other) => [{ path: other }],
  'PATCH /v1/orgs/{org}/members/{user_id}': (own, other) =>
    strangers(own, other).map((path) => ({ path, body: { role: 'member' } })),
  'DELETE /v1/orgs/{org}/members/{user_id}': (own, other) => strangers(own, other).map((path) => ({ path })),
  'GET /v1/orgs/{org}/invitations': (_, other) => [{ path: other }],
  'POST /v1/orgs/{org}/invitations': (own, other) => [
    { path: other, body: { role: 'member' } },
    {
      path: own,
      body: { role: 'member' },
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
  ],
  'DELETE /v1/orgs/{org}/invitations/{invitation_id}': (own, other) => [
    { path: other },
    { path: { ...own, invitation: other.invitation } },
    { path: { ...other, invitation: own.invitation } },
  ],
  // Another organization's token would let the caller in, so only a token that does not exist can be sent.
  'POST /v1/orgs/join': () => [{ body: { token: `inv_${'0'.repeat(64)}` } }],
  'GET /v1/users': (_, other) => [list({ search: other.email }), list({ search: other.mark }), list()],
  'DELETE /v1/users/me': () => [{ succeeds: true }],
  'POST /v1/users/me/switch-org': (_, other) => [{ body: { org_id: other.organization } }],

  'GET /v1/agents': (_, other) => [list(), list({ search: other.mark })],
  'GET /v1/agents/summaries': (_, other) => [list(), list({ search: other.mark }), list({ id: other.agent })],
  'POST /v1/agents': (_, other) => [
    { body: { ...agent, id: other.chosenAgent }, succeeds: true, creates: true },
    { body: { ...agent, default_model_id: other.llmModel } },
    ...capabilitiesOf(other).map((named) => ({ body: { ...agent, ...named } })),
  ],
  'POST /v1/agents/import': (_, other) => [
    { body: JSON.stringify({ ...agent, id: other.importedAgent }), succeeds: true, creates: true },
    { body: JSON.stringify({ ...agent, default_model_id: other.llmModel }) },
    ...capabilitiesOf(other).map((named) => ({ body: JSON.stringify({ ...agent, ...named }) })),
  ],
  'POST /v1/agents/preview': (_, other) => [
    { body: { system_prompt: 'Help.' }, succeeds: true },
    ...capabilitiesOf(other).map((named) => ({ body: { system_prompt: 'Help.', ...named } })),
  ],
  'GET /v1/agents/{agent_id}': (_, other) => [{ path: other }],
  'PUT /v1/agents/{agent_id}': (own, other) => [
    { path: { ...own, agent: other.chosenAgent }, body: agent, succeeds: true, creates: true },
    { path: own, body: { ...agent, default_model_id: other.llmModel } },
    ...capabilitiesOf(other).map((named) => ({ path: own, body: { ...agent, ...named } })),
  ],
  'PATCH /v1/agents/{agent_id}': (own, other) => [
    { path: other, body: { name: 'Taken', status: 'archived' } },
    { path: own, body: { default_model_id: other.llmModel } },
    ...capabilitiesOf(other).map((body) => ({ path: own, body })),
  ],
  'DELETE /v1/agents/{agent_id}': (_, other) => [{ path: other }],
  'POST /v1/agents/{agent_id}/copy': (_, other) => [{ path: other }],
  'GET /v1/agents/{agent_id}/export': (_, other) => [{ path: other }],
  'GET /v1/agents/{agent_id}/versions': (_, other) => [{ path: other }],
  'GET /v1/agents/{agent_id}/versions/{version}': (_, other) => [{ path: other }],
  'GET /v1/agents/{agent_id}/versions/{version}/diff': (_, other) => [{ path: other, query: { from: '1' } }],
  'POST /v1/agents/{agent_id}/versions/{version}/restore': (_, other) => [{ path: other, body: {} }],

  'GET /v1/sessions': (_, other) => [list(), list({ agent_id: other.agent }), list({ search: other.mark })],
  'POST /v1/sessions': (_, other) => [
    { body: { agent_id: other.agent } },
    { body: { model_id: other.llmModel } },
    ...capabilitiesOf(other).map((body) => ({ body })),
    { body: {}, headers: { 'Idempotency-Key': other.idempotencyKey }, succeeds: true, creates: true },
  ],
  'GET /v1/sessions/{session_id}': (_, other) => [
    { path: other },
    { path: { ...other, session: other.session.replace('session_', 'sess_') } },
  ],
  'PATCH /v1/sessions/{session_id}': (_, other) => [{ path: other, body: { title: 'Taken' } }],
  'DELETE /v1/sessions/{session_id}': (_, other) => [{ path: other }],
  'PUT /v1/sessions/{session_id}/pin': (_, other) => [{ path: other }],
  'DELETE /v1/sessions/{session_id}/pin': (_, other) => [{ path: other }],
  'POST /v1/sessions/{session_id}/fork': (own, other) => [
    ...[{}, { at: other.event }, { at: other.turn, again: true }].map((body) => ({ path: other, body })),
    ...[other.event, other.turn, asMessage(other.turn)].map((at) => ({ path: own, body: { at } })),
    { path: own, body: { at: own.turn, again: true, controls: { model_id: other.llmModel } } },
    { path: own, headers: { 'Idempotency-Key': other.idempotencyKey }, succeeds: true, creates: true },
  ],
  'GET /v1/sessions/{session_id}/tree': (_, other) => [{ path: other }],
  'GET /v1/sessions/{session_id}/messages': (_, other) => [{ path: other }],
  'POST /v1/sessions/{session_id}/messages': (own, other) => [
    ...waysToPost(other).map((request) => ({ path: other, ...request })),
    { path: own, body: { message, controls: { model_id: other.llmModel } } },
    // A message may name any image: a missing image becomes a text.
    { path: own, body: { message: imageOf(other) }, succeeds: true, creates: true },
  ],
  'GET /v1/sessions/{session_id}/events': (own, other): Request[] => [
    { path: other },
    { path: other, query: { since_id: other.event } },
    { path: own, query: { since_id: other.event } },
    { path: other, query: { turn_id: other.turn } },
    { path: own, query: { turn_id: other.turn } },
  ],
  'GET /v1/sessions/{session_id}/sse': (own, other): Request[] => [
    { path: other },
    { path: other, query: { since_id: other.event } },
    { path: own, query: { since_id: other.event } },
    { path: own, headers: { 'Last-Event-ID': other.event } },
    { path: other, query: { turn_id: other.turn } },
    { path: own, query: { turn_id: other.turn } },
  ],
  // Without an id that is refused, the answer is a stream without an end.
  'GET /v1/events/sse': (_, other): Request[] => [
    { query: { agent_id: other.agent, since_id: '999999999' } },
    { query: { since_id: other.event } },
  ],
  'GET /v1/turns': (_, other) => runFiltersOf(other).map((filter) => list(filter)),
  'GET /v1/turns/counts': (_, other) => runFiltersOf(other).map((filter) => list(filter)),
  'POST /v1/turns/cancel': (_, other) => runFiltersOf(other).map((body) => ({ body, succeeds: true })),
  'GET /v1/sessions/{session_id}/turns': (_, other) => [{ path: other }],
  'GET /v1/sessions/{session_id}/turns/{turn_id}': (own, other) => [
    { path: other },
    { path: { ...other, session: own.session } },
    { path: { ...other, turn: own.turn } },
  ],
  'POST /v1/sessions/{session_id}/cancel': (own, other) => [
    { path: other },
    { path: atWaiting(other) },
    { path: atWaiting(other), body: { turn_id: other.waitingTurn } },
    { path: atWaiting(own), body: { turn_id: other.waitingTurn } },
    { path: atWaiting(other), body: { turn_id: own.waitingTurn } },
  ],
  'POST /v1/sessions/{session_id}/compact': (_, other) => [{ path: other }],
  'POST /v1/sessions/{session_id}/tool-results': (own, other) => [
    { path: atWaiting(other), body: resultOf(other) },
    { path: atWaiting(own), body: resultOf(other) },
    { path: atWaiting(other), body: resultOf(own) },
  ],
  'POST /v1/sessions/{session_id}/tool-calls/{tool_call_id}/lease': (own, other) =>
    leasesOf(own, other).map((path) => ({ path, body: { holder: 'theirs' } })),
  'DELETE /v1/sessions/{session_id}/tool-calls/{tool_call_id}/lease': (own, other) =>
    leasesOf(own, other).map((path) => {
      const request = { path, query: { holder: 'theirs' } }
      // A holder without a lease has nothing to end.
      return path.session === own.waitingSession ? { ...request, succeeds: true } : request
    }),

  'GET /v1/sessions/{session_id}/fs': (_, other): Request[] => [
    { path: other },
    { path: other, query: { recursive: 'true' } },
    { path: other, query: { archive: 'zip' } },
  ],
  'POST /v1/sessions/{session_id}/fs/_/copy': (_, other) => [
    { path: other, body: { src_path: FILE, dst_path: '/taken' } },
  ],
  'POST /v1/sessions/{session_id}/fs/_/move': (_, other) => [
    { path: other, body: { src_path: FILE, dst_path: '/taken' } },
  ],
  'POST /v1/sessions/{session_id}/fs/_/stat': (_, other) => [
    { path: other, body: { path: FILE } },
    { path: other, body: { path: '/' } },
  ],
  'POST /v1/sessions/{session_id}/fs/_/grep': (_, other) => [{ path: other, body: { pattern: other.mark } }],
  'GET /v1/sessions/{session_id}/fs/{path*}': (_, other): Request[] => [
    { path: other },
    { path: other, query: { raw: 'true' } },
    { path: other, query: { raw: 'true' }, headers: { Range: 'bytes=0-3', 'If-None-Match': '*' } },
  ],
  'POST /v1/sessions/{session_id}/fs/{path*}': (_, other) => [
    { path: other, body: { content: 'taken' } },
    { path: other, body: { is_directory: true } },
    { path: other, body: 'taken', headers: { 'Content-Type': 'text/plain' } },
  ],
  'PUT /v1/sessions/{session_id}/fs/{path*}': (_, other) => [
    { path: other, body: { content: 'taken' } },
    { path: other, body: 'taken', headers: { 'Content-Type': 'text/plain' } },
    { path: other, body: { is_readonly: true } },
    { path: other, body: {} },
  ],
  'DELETE /v1/sessions/{session_id}/fs/{path*}': (_, other) => [
    { path: other },
    { path: other, query: { recursive: 'true' } },
  ],
  'GET /v1/sessions/{session_id}/storage/keys': (_, other) => [{ path: other }],
  'GET /v1/sessions/{session_id}/storage/secrets': (_, other) => [{ path: other }],
  'PUT /v1/sessions/{session_id}/storage/keys/{key}': (own, other) => storing(own, other),
  'DELETE /v1/sessions/{session_id}/storage/keys/{key}': (own, other) => storedOf(own, other),
  'PUT /v1/sessions/{session_id}/storage/secrets/{name}': (own, other) => storing(own, other),
  'DELETE /v1/sessions/{session_id}/storage/secrets/{name}': (own, other) => storedOf(own, other),

  'GET /v1/sessions/{session_id}/databases': (_, other) => [{ path: other }],
  'POST /v1/sessions/{session_id}/databases': (own, other) => [
    { path: other, body: { name: 'taken' } },
    {
      path: own,
      body: { name: other.database },
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
  ],
  'GET /v1/sessions/{session_id}/databases/{name}': (own, other) => databasesOf(own, other),
  'DELETE /v1/sessions/{session_id}/databases/{name}': (own, other) => databasesOf(own, other),
  'GET /v1/sessions/{session_id}/databases/{name}/schema': (own, other) => databasesOf(own, other),
  'GET /v1/sessions/{session_id}/databases/{name}/file': (own, other) => databasesOf(own, other),
  'PUT /v1/sessions/{session_id}/databases/{name}/file': (own, other) => [
    { path: other, body: '' },
    { path: { ...other, database: own.database }, body: '' },
    { path: { ...own, database: other.database }, body: '', succeeds: true, creates: true },
  ],
  'POST /v1/sessions/{session_id}/databases/{name}/query': (own, other) =>
    databasesOf(own, other).map((request) => ({ ...request, body: { sql: 'SELECT * FROM sqlite_schema' } })),

  'GET /v1/llm-providers': () => [list()],
  'POST /v1/llm-providers': (_, other) => [
    {
      body: { name: 'A provider', provider_type: 'llmsim' },
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
  ],
  'GET /v1/llm-providers/{provider_id}': (_, other) => [{ path: other }],
  'PATCH /v1/llm-providers/{provider_id}': (_, other) => [
    { path: other, body: { name: 'Taken', status: 'disabled', api_key: 'taken' } },
    { path: other, body: {} },
  ],
  'DELETE /v1/llm-providers/{provider_id}': (_, other) => [{ path: other }],
  'POST /v1/llm-providers/{provider_id}/sync-models': (_, other) => [{ path: other }],
  'GET /v1/llm-providers/{provider_id}/models': (_, other) => [{ path: other }],
  'POST /v1/llm-providers/{provider_id}/models': (_, other) => [
    { path: other, body: { model_id: 'llmsim-script', display_name: 'Taken', is_default: true } },
  ],
  'GET /v1/llm-models': () => [list(), list({ favorites_only: 'true' })],
  'GET /v1/llm-models/{id}': (_, other) => [{ path: other }],
  'PATCH /v1/llm-models/{id}': (_, other) => [
    { path: other, body: { display_name: 'Taken', is_default: true } },
    { path: other, body: { is_default: false } },
  ],
  'DELETE /v1/llm-models/{id}': (_, other) => [{ path: other }],
  'GET /v1/mcp-servers': () => [list()],
  'POST /v1/mcp-servers': (_, other) => [
    {
      body: { name: `Of ${newUuid()}`, url: 'https://mcp.example/' },
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
  ],
  'GET /v1/mcp-servers/{server_id}': (_, other) => [{ path: other }],
  'PATCH /v1/mcp-servers/{server_id}': (_, other) => [
    { path: other, body: { name: 'Taken', status: 'disabled', api_key: 'taken', headers: { 'X-Taken': 'taken' } } },
    { path: other, body: { accept_tools_changed_at: '2026-01-01T00:00:00Z' } },
    { path: other, body: {} },
  ],
  'DELETE /v1/mcp-servers/{server_id}': (_, other) => [{ path: other }],
  'POST /v1/mcp-servers/{server_id}/connect': (_, other) => [{ path: other }],
  'GET /v1/mcp-servers/{server_id}/connect': (own, other) => [
    { path: other },
    { path: other, query: { org: other.organization } },
    { path: own, query: { org: other.organization } },
  ],
  'DELETE /v1/mcp-servers/{server_id}/grant': (_, other) => [{ path: other }],
  'GET /v1/mcp-servers/{server_id}/resources': (_, other) => [{ path: other }],
  'GET /v1/mcp-servers/{server_id}/resources/read': (_, other) => [{ path: other, query: { uri: 'demo://a' } }],
  'GET /v1/mcp-servers/{server_id}/prompts': (_, other) => [{ path: other }],
  'POST /v1/mcp-servers/{server_id}/prompts/get': (_, other) => [{ path: other, body: { name: 'a' } }],
  'GET /v1/secrets': () => [list()],
  'PUT /v1/secrets/{name}': (_, other) => [
    { path: other, body: { value: 'taken', hosts: ['example.com'] }, succeeds: true, creates: true },
  ],
  'DELETE /v1/secrets/{name}': (_, other) => [{ path: other }],
  'GET /v1/images': () => [list(), list({ offset: '0', limit: '1000' })],
  'POST /v1/images': (_, other) => [
    {
      body: formOf(PIXEL),
      query: { session_id: other.session },
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
  ],
  'GET /v1/images/{image_id}': (_, other) => [
    { path: other },
    { path: { ...other, image: prefixed(other.image) } },
    ...conditional(other),
    ...conditional({ ...other, image: prefixed(other.image) }),
  ],
  'GET /v1/images/{image_id}/thumbnail': (_, other) => [{ path: other }, ...conditional(other)],
  'DELETE /v1/images/{image_id}': (_, other) => [{ path: other }, { path: { ...other, image: prefixed(other.image) } }],
  'GET /v1/budgets': (_, { session }) => [list(), list({ session_id: session })],
  'POST /v1/budgets': (_, other) => [
    {
      body: { scope: 'organization', limit_usd: '1000' },
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
    ...Object.entries({ session: other.session, agent: other.agent, api_key: other.apiKey, user: other.user }).map(
      ([scope, id]) => ({ body: { scope, [`${scope}_id`]: id, limit_tokens: 1 } }),
    ),
  ],
  'GET /v1/budgets/{budget_id}': (_, other) => [{ path: other }],
  'PATCH /v1/budgets/{budget_id}': (_, other) => [{ path: other, body: { limit_usd: '1' } }],
  'DELETE /v1/budgets/{budget_id}': (_, other) => [{ path: other }],
  'GET /v1/usage': (_, other) => [
    list(USAGE_PERIOD),
    ...Object.entries({
      ...{ session_id: other.session, agent_id: other.agent, api_key_id: other.apiKey, user_id: other.user },
    }).map(([name, id]) => ({ query: { [name]: id, group_by: 'session', ...USAGE_PERIOD }, succeeds: true as const })),
  ],
  'GET /v1/skills': () => [list()],
  'POST /v1/skills': (_, other) => [
    {
      body: { skill_md: skillMd(newSkillName()) },
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
  ],
  'POST /v1/skills/upload': (_, other) => [
    {
      body: formOf(skillZip(newSkillName())),
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
  ],
  'POST /v1/skills/validate': () => [{ body: { skill_md: skillMd('a') }, succeeds: true }],
  'GET /v1/skills/{skill_id}': (_, other) => [{ path: other }],
  'GET /v1/skills/{skill_id}/content': (_, other) => [{ path: other }],
  'PUT /v1/skills/{skill_id}/content': (_, other) => [{ path: other, body: formOf(skillZip('taken')) }],
  'PATCH /v1/skills/{skill_id}': (_, other) => [
    { path: other, body: { skill_md: skillMd('taken'), status: 'disabled' } },
    { path: other, body: {} },
  ],
  'DELETE /v1/skills/{skill_id}': (_, other) => [{ path: other }],
  'GET /v1/capabilities': () => [list()],
  'GET /v1/capabilities/{capability_id}': (_, other) =>
    [other.skillRef, other.serverRef].map((skillRef) => ({ path: { ...other, skillRef } })),
  'GET /v1/audit': (_, other) => [
    list({ action: 'agent.create', target_id: other.agent }),
    list({ user_id: other.user, action: 'agent.create' }),
    list({ api_key_id: other.apiKey }),
  ],
  'GET /v1/durable/sse': () => [{}],
  'GET /v1/durable/schedules': () => [list(), list({ enabled: 'false', target_type: 'activity' })],
  'POST /v1/durable/schedules': (_, other) => [
    {
      body: { ...yearly, name: `Of ${newUuid()}`, target: noop },
      headers: { 'Idempotency-Key': other.idempotencyKey },
      succeeds: true,
      creates: true,
    },
    ...targetsOf(other).map((target) => ({ body: { ...yearly, name: 'Taken', target } })),
  ],
  'GET /v1/durable/schedules/{schedule_id}': (_, other) => [{ path: other }],
  'PATCH /v1/durable/schedules/{schedule_id}': (own, other) => [
    { path: other, body: { ...yearly, description: 'Taken', enabled: true, target: noop } },
    { path: other, body: {} },
    ...targetsOf(other).map((target) => ({ path: own, body: { target } })),
  ],
  'DELETE /v1/durable/schedules/{schedule_id}': (_, other) => [{ path: other }],
  'POST /v1/durable/schedules/{schedule_id}/pause': (_, other) => [{ path: other }],
  'POST /v1/durable/schedules/{schedule_id}/resume': (_, other) => [{ path: other }],
  'POST /v1/durable/schedules/{schedule_id}/trigger': (own, other) => [
    { path: other },
    { path: own, headers: { 'Idempotency-Key': other.idempotencyKey }, succeeds: true, creates: true },
  ],
  'GET /v1/durable/schedules/{schedule_id}/stats': (_, other) => [{ path: other }],
  'GET /v1/durable/schedules/{schedule_id}/executions': (_, other) => [
    { path: other },
    { path: other, query: { status: 'completed' } },
  ],
  'GET /v1/durable/executions/{execution_id}': (_, other) => [{ path: other }],
  'GET /v1/task-queues': () => [list()],
  'PUT /v1/task-queues/{task_queue}': (_, other) => [
    { path: other, body: { encryption_key: QUEUE_KEY }, succeeds: true, creates: true },
  ],
  'DELETE /v1/task-queues/{task_queue}': (_, other) => [{ path: other }],
  'GET /v1/webhooks': () => [list()],
  'POST /v1/webhooks': (_, other) => [
    { body: { ...hook, agent_id: other.agent } },
    { body: hook, headers: { 'Idempotency-Key': other.idempotencyKey }, succeeds: true, creates: true },
  ],
  'GET /v1/webhooks/{webhook_id}': (_, other) => [{ path: other }],
  'PATCH /v1/webhooks/{webhook_id}': (own, other) => [
    { path: other, body: { ...hook, enabled: false } },
    { path: other, body: {} },
    { path: own, body: { agent_id: other.agent } },
  ],
  'DELETE /v1/webhooks/{webhook_id}': (_, other) => [{ path: other }],
  'POST /v1/webhooks/{webhook_id}/rotate-secret': (own, other) => [
    { path: other },
    { path: own, headers: { 'Idempotency-Key': other.idempotencyKey }, succeeds: true, creates: true },
  ],
  'POST /v1/webhooks/{webhook_id}/test': (own, other) => [
    { path: other },
    { path: own, headers: { 'Idempotency-Key': other.idempotencyKey }, succeeds: true, creates: true },
  ],
  'GET /v1/webhooks/{webhook_id}/deliveries': (_, other) => [
    { path: other },
    { path: other, query: { status: 'failed' } },
  ],
  'POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver': (own, other) =>
    [other, { ...own, delivery: other.delivery }, { ...other, delivery: own.delivery }].map((path) => ({ path })),
}

const QUEUE_KEY = Buffer.alloc(32, 'k').toString('base64')
const hook = { url: 'https://hooks.example/', events: ['turn.failed'] }
const yearly = { cron_expression: '0 0 1 1 *', enabled: false }
const noop = { type: 'activity', name: 'noop' }
/** Targets that name a session or an agent. */
const targetsOf = ({ session, agent }: Ids) =>
  [{ session_id: session }, { agent_id: agent }].map((named) => ({
    type: 'workflow',
    name: 'session_message',
    input: { ...named, message: 'Hello' },
  }))

/** Requests that are answered without the image's bytes, or with some of them. */
const conditional = (path: Ids): Request[] => [
  { path, headers: { 'If-None-Match': `"${path.image}"` } },
  { path, headers: { Range: 'bytes=0-3' } },
]
/** Names the skill, and the MCP server, as a capability. */
const capabilitiesOf = ({ skillRef, serverRef }: Ids) =>
  [skillRef, serverRef].map((ref) => ({ capabilities: [{ ref }] }))
/** Returns a name that no skill has. */
const newSkillName = () => `skill-${newUuid()}`
const prefixed = (image: string) => `img_${image.replaceAll('-', '')}`
const imageOf = ({ image }: Ids) => ({ content: [{ type: 'image_file', image_id: image }] })
const waysToPost = ({ idempotencyKey }: Ids): Request[] => [
  { body: { message } },
  { body: { message, on_busy: 'reject' } },
  { body: { message, on_busy: 'interrupt' } },
  { body: { message }, query: { wait: '1' } },
  { body: { message }, headers: { 'Idempotency-Key': idempotencyKey } },
  { body: { message }, headers: { Accept: 'text/event-stream' } },
]
/** Members named with an organization or a user of somebody else's, or both. */
const strangers = (own: Ids, other: Ids): Ids[] => [other, { ...own, user: other.user }, { ...other, user: own.user }]
/** Filters of turns that name what is somebody else's. */
const runFiltersOf = ({ agent, session, user, mark }: Ids): Record<string, string>[] => [
  { agent_id: agent },
  { session_id: session },
  { user_id: user },
  { search: mark },
]
const databasesOf = (own: Ids, other: Ids): Request[] =>
  [other, { ...own, database: other.database }, { ...other, database: own.database }].map((path) => ({ path }))
/** Values and secrets, which the mark names. A database's name is no more than a parameter of the same name. */
const storedOf = (own: Ids, other: Ids): Request[] =>
  [other, { ...own, mark: other.mark }, { ...other, mark: own.mark }].map((ids) => ({
    path: { ...ids, database: ids.mark },
  }))
const storing = (own: Ids, other: Ids): Request[] =>
  storedOf(own, other).map(({ path }) => ({
    path: path ?? own,
    body: { value: 'taken' },
    ...(path?.session === own.session ? { succeeds: true, creates: true } : {}),
  }))
const atWaiting = (ids: Ids): Ids => ({ ...ids, session: ids.waitingSession, turn: ids.waitingTurn })
const leasesOf = (own: Ids, other: Ids): Ids[] =>
  [other, { ...own, toolCall: other.toolCall }, { ...other, toolCall: own.toolCall }].map(atWaiting)
const resultOf = ({ toolCall }: Ids) => ({ tool_results: [{ tool_call_id: toolCall, result: 'theirs' }] })

/** Path parameters that belong to no organization. `path` is a file in each owner's session, `version` one of each agent. */
const NOWHERE = {
  provider: 'idpa',
  path: FILE.slice(1),
  version: '1',
}

const parametersOf = (ids: Ids): Record<string, string> => ({
  agent_id: ids.agent,
  session_id: ids.session,
  name: ids.database,
  key: ids.mark,
  turn_id: ids.turn,
  tool_call_id: ids.toolCall,
  org: ids.organization,
  key_id: ids.apiKey,
  user_id: ids.user,
  invitation_id: ids.invitation,
  id: ids.llmModel,
  provider_id: ids.llmProvider,
  server_id: ids.mcpServer,
  image_id: ids.image,
  skill_id: ids.skill,
  budget_id: ids.budget,
  capability_id: ids.skillRef,
  schedule_id: ids.schedule,
  execution_id: ids.execution,
  webhook_id: ids.webhook,
  task_queue: ids.taskQueue,
  delivery_id: ids.delivery,
  provider: NOWHERE.provider,
  path: encodeURI(NOWHERE.path),
  version: NOWHERE.version,
})

export type Planned = Sent & Pick<Request, 'succeeds' | 'creates'>

/** Returns all requests of an operation as they are sent. */
export function plan(operation: string, own: Ids, other: Ids): Planned[] {
  const [method = '', path = ''] = operation.split(' ')
  return (requests[operation]?.(own, other) ?? []).map(({ path: ids = own, query = {}, ...request }) => {
    const parameters = parametersOf(ids)
    const filled = path.replace(/\{(\w+)\*?\}/g, (_, name: string) => {
      const value = parameters[name]
      // The walk proves nothing unless the value is an id of the other organization.
      if (value === undefined)
        throw new Error(
          `test/support/requests.ts has no value for {${name}} of "${operation}": add it to parametersOf, from an id in test/support/belongings.ts.`,
        )
      return value
    })
    const asked = new URLSearchParams(query).toString()
    return { ...request, method, path: asked === '' ? filled : `${filled}?${asked}` }
  })
}
