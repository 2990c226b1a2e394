import type { CreateMcpServerRequest, McpServer, ToolDefinition, UpdateMcpServerRequest } from 'agent-session-client'
import { useLoad } from '../load.ts'
import { Badge, StatusBadge } from '../parts/badge.ts'
import { optionsOf } from '../parts/choice.ts'
import { commandFor } from '../parts/command.ts'
import { keyChanges, REMOVE_KEY, STATUS } from '../parts/common-fields.ts'
import type { Values } from '../parts/form.ts'
import { viewOf } from '../parts/list-view.ts'
import { Problem, Quiet } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { Time } from '../parts/time.ts'
import { ToolDetails } from '../parts/tool-details.ts'
import { api, isAdministrator } from '../service.ts'
import { html, type VNode } from '../ui.ts'
import { Offers } from './mcp-offers.ts'

const update = ({ id }: McpServer, body: UpdateMcpServerRequest) => api.mcpServers.update({ server_id: id, ...body })

const mcpServers: Resource<McpServer> = {
  path: 'mcp-servers',
  title: 'MCP servers',
  icon: 'plug',
  one: 'MCP server',
  mayWrite: isAdministrator,
  about: 'Servers that give tools to agents, by the Model Context Protocol. Add a server to an agent as a capability.',
  example: () => commandFor('/v1/mcp-servers', { name: 'Docs', url: 'https://mcp.example.com/mcp' }),
  list: async () => (await api.mcpServers.list()).data,
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: 'Address', cell: ({ url }) => html`<code class="one-line" title=${url}>${url}</code>` },
    { title: 'Status', cell: (server) => html`<${ServerBadge} server=${server} />` },
    { title: 'Tools', isNumber: true, cell: ({ tools_count }) => tools_count },
    {
      title: 'Tools read',
      isMinor: true,
      cell: ({ tools_discovered_at, tools_error }) =>
        tools_discovered_at ? html`<${Time} at=${tools_discovered_at} />` : tools_error ? 'never' : 'when first used',
    },
  ],
  fields: (item) => [
    { name: 'name', label: 'Name', kind: 'text', isRequired: true },
    {
      name: 'url',
      label: 'Address',
      kind: 'text',
      isRequired: true,
      hint: 'Address of its MCP endpoint, such as https://mcp.example.com/mcp.',
    },
    { name: 'description', label: 'Description', kind: 'longtext', rows: 3, empty: '' },
    {
      name: 'api_key',
      label: 'API key',
      kind: 'secret',
      hint: item?.api_key_set ? 'A key is stored. Leave this empty to keep it.' : 'Sent as “Authorization: Bearer …”.',
    },
    ...(item?.api_key_set ? [REMOVE_KEY] : []),
    {
      name: 'headers',
      label: 'Headers',
      kind: 'json',
      hint: `Sent with each request, as {"X-Name": "value"}.${item ? ' *** keeps a stored value.' : ''}`,
    },
    {
      name: 'oauth',
      label: 'Sign-in (OAuth)',
      kind: 'json',
      hint: '{"as": "organization"} signs in once for all, {"as": "user"} each person for their own turns. Also takes "scopes", "client_id" and "client_secret". Empty: no sign-in.',
    },
    {
      name: 'tools_policy',
      label: 'New and changed tools',
      kind: 'choice',
      isRequired: true,
      options: optionsOf({ accept: 'Accept them automatically', ask: 'Ask before each call, until they are accepted' }),
    },
    ...(item === undefined ? [] : [STATUS]),
  ],
  badge: (server) => html`<${ServerBadge} server=${server} />`,
  valuesOf: ({ name, url, description, headers, oauth, tools_policy, status }): Values => {
    const shown = Object.keys(headers).length > 0 ? headers : null
    return { name, url, description, headers: shown, oauth: oauth ? givenOauth(oauth) : null, tools_policy, status }
  },
  create: (values) => api.mcpServers.create(values as CreateMcpServerRequest),
  update: (item, { headers, oauth, ...changes }) =>
    // Null would keep the headers.
    update(item, {
      ...keyChanges(changes),
      ...(oauth !== undefined && { oauth: (oauth ?? { as: 'none' }) as UpdateMcpServerRequest['oauth'] }),
      ...(headers !== undefined && { headers: (headers ?? {}) as Record<string, string> }),
    }),
  actions: [
    {
      label: ({ oauth }) => (oauth?.connected ? 'Connect again' : 'Connect'),
      isForAll: true,
      isOffered: ({ oauth }) => oauth?.as === 'user' || (oauth?.as === 'organization' && isAdministrator()),
      run: connect,
    },
    {
      label: 'Disconnect',
      isForAll: true,
      isOffered: ({ oauth }) => Boolean(oauth?.connected) && (oauth?.as === 'user' || isAdministrator()),
      run: ({ id }) => api.mcpServers.disconnect({ server_id: id }),
    },
    {
      label: 'Accept the changes',
      isOffered: ({ tools_changed_at }) => Boolean(tools_changed_at),
      run: (item) => update(item, { accept_tools_changed_at: item.tools_changed_at }),
    },
  ],
  Detail: ({
    item,
  }) => html`${needsSignIn(item) && html`<${Quiet}>Connect to sign in at the server. Its tools work after that.<//>`}
    <${Tools} server=${item} />${item.status === 'active' && html`<${Offers} key=${item.id} id=${item.id} />`}`,
  remove: {
    label: 'Delete',
    question: ({ name }) => `Delete the MCP server “${name}”? Agents lose its tools.`,
    run: ({ id }) => api.mcpServers.delete({ server_id: id }),
  },
}

export const View = viewOf(mcpServers)

/** Reports whether a person has to sign in at a server before its tools work. */
const needsSignIn = ({ oauth }: McpServer): boolean => oauth?.connected === false

function ServerBadge({ server }: { server: McpServer }): VNode {
  const { status, tools_error, tools_changed_at } = server
  if (status !== 'active') return html`<${StatusBadge} status=${status} />`
  if (needsSignIn(server)) return html`<${Badge} status="Sign in to connect" icon="link" tone="wait" />`
  if (tools_error) return html`<span title=${tools_error}><${Badge} status="failed" word="Unreachable" /></span>`
  if (tools_changed_at) return html`<${Badge} status="changed" word="Tools changed" />`
  return html`<${StatusBadge} status=${status} />`
}

/** Returns the sign-in as a request takes it. */
const givenOauth = ({ as, scopes, client_id, client_secret_set }: NonNullable<McpServer['oauth']>) => ({
  as,
  ...(scopes.length > 0 && { scopes }),
  ...(client_id && { client_id }),
  ...(client_secret_set && { client_secret: '***' }),
})

/** Opens the sign-in in a new tab, which browsers allow only at once after a click. */
async function connect({ id }: McpServer): Promise<string> {
  const tab = window.open('', '_blank')
  // The server chooses the address of the tab, which must not reach this page.
  if (tab) tab.opener = null
  try {
    const { authorization_url } = await api.mcpServers.connect({ server_id: id })
    if (tab) tab.location.href = authorization_url
    else location.href = authorization_url
  } catch (error) {
    tab?.close()
    throw error
  }
  return 'Sign in in the other tab, then reload this page.'
}

/** Tools as models get them. Marks tools that differ from the accepted ones. */
function Tools({ server }: { server: McpServer }): VNode {
  const { id, changed_tools, tools_error, tools_discovered_at, status } = server
  const { value: tools, error } = useLoad(
    async () => (status === 'active' ? readTools(id) : undefined),
    [id, tools_discovered_at, status],
  )
  const names = new Set(tools?.map(({ name }) => name))
  const removed = changed_tools.filter((name) => !names.has(name))
  return html`<section>
    <h2>Tools</h2>
    <${Problem} error=${error} />
    ${tools_error && html`<p class="problem" dir="auto">${tools_error}</p>`}
    ${status === 'disabled' && html`<${Quiet}>A disabled server’s tools are not listed.<//>`}
    ${tools?.length === 0 && html`<${Quiet}>None are known.<//>`}
    ${tools?.map(
      (tool) =>
        html`<${ToolDetails} key=${tool.name} tool=${tool}>${changed_tools.includes(tool.name) && html`<${Badge} status="changed" />`}<//>`,
    )}
    ${tools && removed.map((name) => html`<p key=${name}><code>${name}</code> <${Badge} status="Removed" icon="slash" tone="wait" /></p>`)}
  </section>`
}

/** Reads the tools of a server from its capability, which has the same UUID. */
async function readTools(id: string): Promise<ToolDefinition[]> {
  const [, a, b, c, d, e] = /^mcp_(.{8})(.{4})(.{4})(.{4})(.{12})$/.exec(id) ?? []
  const capability_id = `mcp:${[a, b, c, d, e].join('-')}`
  return (await api.capabilities.get({ capability_id })).tool_definitions
}
