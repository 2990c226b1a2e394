import { FILE, type Ids, type Owner } from './belongings.ts'
import { call, type Json } from './http.ts'
import { USAGE_PERIOD } from './requests.ts'
import type { Table } from './tables.ts'
import { endpointOf, expectEntryForEach, operations } from './walk.ts'

type Parameters = Record<string, string>

const list = (query: Parameters = {}) => [query]
const ofSessions = ({ session, waitingSession, deletedSession }: Ids): Parameters[] =>
  [session, waitingSession, deletedSession].map((session_id) => ({ session_id }))
const ofAgents = ({ agent, chosenAgent, importedAgent }: Ids): Parameters[] =>
  [agent, chosenAgent, importedAgent].map((agent_id) => ({ agent_id }))
const ofSchedules = ({ schedule }: Ids): Parameters[] => list({ schedule_id: schedule })

const ofWebhooks = ({ webhook }: Ids): Parameters[] => list({ webhook_id: webhook })

const AT_SERVER = 'what an MCP server answers'
const STREAM = 'a stream of what is read elsewhere'

/**
 * Parameters with which an owner reads everything in the organization, for each operation that reads, or the reason why
 * it shows nothing of it. Parameters that are not in the path go into the query.
 */
export const views: Record<string, ((ids: Ids) => Parameters[]) | string> = {
  'GET /v1/auth/me': () => list(),
  'GET /v1/auth/api-keys': () => list(),
  'GET /v1/orgs': () => list(),
  'GET /v1/orgs/{org}': ({ organization }) => list({ org: organization }),
  'GET /v1/orgs/{org}/members': ({ organization }) => list({ org: organization }),
  'GET /v1/orgs/{org}/invitations': ({ organization }) => list({ org: organization }),
  'GET /v1/users': () => list(),
  'GET /v1/agents': () => list(),
  'GET /v1/agents/summaries': () => list(),
  'GET /v1/agents/{agent_id}': ofAgents,
  'GET /v1/agents/{agent_id}/export': ofAgents,
  'GET /v1/agents/{agent_id}/versions': ofAgents,
  'GET /v1/agents/{agent_id}/versions/{version}': (ids) => ofAgents(ids).map((one) => ({ ...one, version: '1' })),
  'GET /v1/agents/{agent_id}/versions/{version}/diff': (ids) =>
    ofAgents(ids).map((one) => ({ ...one, version: '1', from: '1' })),
  'GET /v1/sessions': ({ mark }) => list({ limit: '100', search: mark }).concat({ limit: '100' }),
  'GET /v1/sessions/{session_id}': ofSessions,
  'GET /v1/sessions/{session_id}/tree': ofSessions,
  'GET /v1/sessions/{session_id}/messages': ofSessions,
  'GET /v1/sessions/{session_id}/events': ofSessions,
  'GET /v1/sessions/{session_id}/sse': STREAM,
  'GET /v1/events/sse': STREAM,
  'GET /v1/turns': ({ mark }) => list({ search: mark }).concat({}),
  'GET /v1/turns/counts': () => list(),
  'GET /v1/sessions/{session_id}/turns': ofSessions,
  'GET /v1/sessions/{session_id}/turns/{turn_id}': ({ session, turn, waitingSession, waitingTurn }) => [
    { session_id: session, turn_id: turn },
    { session_id: waitingSession, turn_id: waitingTurn },
  ],
  'GET /v1/sessions/{session_id}/fs': ({ session }) => list({ session_id: session, recursive: 'true' }),
  'GET /v1/sessions/{session_id}/fs/{path*}': ({ session }) =>
    list({ session_id: session, path: encodeURI(FILE.slice(1)) }),
  'GET /v1/sessions/{session_id}/storage/keys': ofSessions,
  'GET /v1/sessions/{session_id}/storage/secrets': ofSessions,
  'GET /v1/sessions/{session_id}/databases': ({ session }) => list({ session_id: session }),
  'GET /v1/sessions/{session_id}/databases/{name}': ({ session, database }) =>
    list({ session_id: session, name: database }),
  'GET /v1/sessions/{session_id}/databases/{name}/schema': ({ session, database }) =>
    list({ session_id: session, name: database }),
  'GET /v1/sessions/{session_id}/databases/{name}/file': ({ session, database }) =>
    list({ session_id: session, name: database }),
  'GET /v1/llm-providers': () => list(),
  'GET /v1/llm-providers/{provider_id}': ({ llmProvider }) => list({ provider_id: llmProvider }),
  'GET /v1/llm-providers/{provider_id}/models': ({ llmProvider }) => list({ provider_id: llmProvider }),
  'GET /v1/llm-models': () => list({ include_stale: 'true' }),
  'GET /v1/llm-models/{id}': ({ llmModel }) => list({ id: llmModel }),
  'GET /v1/mcp-servers': () => list(),
  'GET /v1/mcp-servers/{server_id}': ({ mcpServer }) => list({ server_id: mcpServer }),
  'GET /v1/mcp-servers/{server_id}/connect': 'the way to a sign-in elsewhere',
  'GET /v1/mcp-servers/{server_id}/resources': AT_SERVER,
  'GET /v1/mcp-servers/{server_id}/resources/read': AT_SERVER,
  'GET /v1/mcp-servers/{server_id}/prompts': AT_SERVER,
  'GET /v1/secrets': () => list(),
  'GET /v1/images': () => list(),
  'GET /v1/images/{image_id}': ({ image }) => list({ image_id: image }),
  'GET /v1/images/{image_id}/thumbnail': ({ image }) => list({ image_id: image }),
  'GET /v1/skills': () => list(),
  'GET /v1/skills/{skill_id}': ({ skill }) => list({ skill_id: skill }),
  'GET /v1/skills/{skill_id}/content': ({ skill }) => list({ skill_id: skill }),
  'GET /v1/capabilities': () => list(),
  'GET /v1/capabilities/{capability_id}': ({ skillRef, serverRef }) => [
    { capability_id: skillRef },
    { capability_id: serverRef },
  ],
  'GET /v1/budgets': () => list(),
  'GET /v1/budgets/{budget_id}': ({ budget }) => list({ budget_id: budget }),
  'GET /v1/usage': () => list({ group_by: 'session', ...USAGE_PERIOD }),
  // Without failed sign-ins, which anybody can cause.
  'GET /v1/audit': () => list({ action: 'agent.create', target_type: 'agent' }),
  'GET /v1/durable/sse': STREAM,
  'GET /v1/durable/schedules': () => list(),
  'GET /v1/durable/schedules/{schedule_id}': ofSchedules,
  'GET /v1/durable/schedules/{schedule_id}/stats': ofSchedules,
  'GET /v1/durable/schedules/{schedule_id}/executions': ofSchedules,
  'GET /v1/task-queues': () => list(),
  'GET /v1/webhooks': () => list(),
  'GET /v1/webhooks/{webhook_id}': ofWebhooks,
  'GET /v1/webhooks/{webhook_id}/deliveries': ofWebhooks,
  'GET /v1/durable/executions/{execution_id}': ({ execution }) => list({ execution_id: execution }),
}

/** View that shows the rows of each table with an organization's or session's data, or the reason why none does. */
export const tables: Record<string, string> = {
  members: 'GET /v1/users',
  api_keys: 'GET /v1/auth/api-keys',
  invitations: 'GET /v1/orgs/{org}/invitations',
  llm_providers: 'GET /v1/llm-providers',
  llm_models: 'GET /v1/llm-models',
  mcp_servers: 'GET /v1/mcp-servers',
  organization_secrets: 'GET /v1/secrets',
  mcp_grants: 'tokens, which only MCP servers are given; test/service/mcp-sign-in.test.ts reads them',
  images: 'GET /v1/images',
  skills: 'GET /v1/skills',
  schedules: 'GET /v1/durable/schedules',
  schedule_executions: 'GET /v1/durable/schedules/{schedule_id}/executions',
  task_queues: 'GET /v1/task-queues',
  webhooks: 'GET /v1/webhooks',
  agents: 'GET /v1/agents',
  agent_versions: 'GET /v1/agents/{agent_id}/versions',
  sessions: 'GET /v1/sessions',
  session_counts: 'GET /v1/sessions',
  session_pins: 'GET /v1/sessions',
  session_texts: 'GET /v1/sessions',
  face_sessions: "the ids that faces' clients have for sessions; test/service/ai-sdk.test.ts reads them",
  turns: 'GET /v1/sessions/{session_id}/turns',
  events: 'GET /v1/sessions/{session_id}/events',
  budgets: 'GET /v1/budgets',
  usage_hours: 'GET /v1/usage',
  organization_events: 'ids of sessions and turns, which are read elsewhere; GET /v1/events/sse streams them',
  session_files: 'GET /v1/sessions/{session_id}/fs',
  session_file_chunks: 'GET /v1/sessions/{session_id}/fs/{path*}',
  session_file_totals: 'numbers that follow from the files',
  session_databases: 'GET /v1/sessions/{session_id}/databases',
  session_database_pages: 'GET /v1/sessions/{session_id}/databases/{name}/schema',
  session_snapshots: 'what these were before; forks show it, see test/record/forks.test.ts',
  session_settings: 'what the fields of sessions were before; forks show it',
  session_values: 'GET /v1/sessions/{session_id}/storage/keys',
  session_secrets: 'GET /v1/sessions/{session_id}/storage/secrets',
  call_secrets: 'what tools and models alone are given',
  audit_entries: 'GET /v1/audit',
  idempotency_keys: 'the answers that they keep; requests.ts names the key, and the other answer would be told',
}

/** Throws with a sentence for each operation that reads non-public data and has no view. */
export function expectViewOfEach(views: object, among: string[] = operations): void {
  const reading = among.filter((one) => one.startsWith('GET ') && endpointOf(one).access !== 'public')
  const what = 'with which parameters an owner reads all there is, so that a change by somebody else is noticed'
  expectEntryForEach(views, 'test/support/views.ts', what, reading)
}

/** Throws with a sentence for each table that no known view shows. */
export function expectTablesKnown(found: Table[], known: Record<string, string> = tables): void {
  const missing = found.filter(({ name }) => known[name] === undefined)
  const left = Object.keys(known).filter((table) => !found.some(({ name }) => name === table))
  const unseen = Object.entries(known).filter(
    ([, view]) => view.startsWith('GET ') && typeof views[view] !== 'function',
  )
  const sentences = [
    ...missing.map(
      ({ name, columns }) =>
        `The table ${name} has a ${columns.join(' and a ')}, and test/support/views.ts does not know it: add to \`tables\` ` +
        'the view that shows its rows, or why none does, and let createOwner in test/support/belongings.ts make a row.',
    ),
    ...left.map((table) => `test/support/views.ts has the table ${table}, which does not exist: remove it.`),
    ...unseen.map(([table, view]) => `In test/support/views.ts ${table} is shown by "${view}", which is not a view.`),
  ]
  if (sentences.length > 0) throw new Error(sentences.join('\n'))
}

/** Reads everything that the owner can see of the organization. */
export async function viewOf(url: string, { headers, ids }: Owner): Promise<Json> {
  const read = async (path: string): Promise<Json> => {
    const { status, body } = await call(url, 'GET', path, undefined, headers)
    return { status, body }
  }
  const view: Record<string, Json> = {}
  for (const path of pathsOf(ids)) view[path] = await read(path)
  return view
}

/** Returns all paths at which the owner reads the organization's data. */
const pathsOf = (ids: Ids): string[] =>
  Object.entries(views).flatMap(([operation, view]) =>
    typeof view === 'string' ? [] : view(ids).map((parameters) => fill(operation, parameters)),
  )

function fill(operation: string, parameters: Parameters): string {
  const rest = new Map(Object.entries(parameters))
  const path = operation.replace(/^\w+ /, '').replace(/\{(\w+)\*?\}/g, (_, name: string) => {
    const value = rest.get(name)
    if (value === undefined)
      throw new Error(`test/support/views.ts has no value for {${name}} of "${operation}": add it to its view.`)
    rest.delete(name)
    return value
  })
  return rest.size === 0 ? path : `${path}?${new URLSearchParams([...rest])}`
}
