import type { CreateMcpServerRequest, McpServer, UpdateMcpServerRequest } from 'agent-session-client'
import type { Values } from '../parts/form.ts'
import { Time } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { api } from '../service.ts'
import { html } from '../ui.ts'

const update = ({ id }: McpServer, body: UpdateMcpServerRequest) =>
  api.updateMcpServer({ path: { server_id: id }, body })

export const mcpServers: Resource<McpServer> = {
  path: 'mcp-servers',
  title: 'MCP servers',
  one: 'MCP server',
  about: 'Servers whose tools agents may use. Each is a capability of an agent.',
  list: async () => (await api.listMcpServers()).data,
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: 'Address', cell: ({ url }) => html`<code>${url}</code>` },
    { title: 'Status', cell: ({ status, tools_error }) => tools_error ?? status },
    {
      title: 'Tools',
      cell: ({ tools_count, tools_changed_at }) =>
        html`${tools_count ?? 'not read yet'} ${tools_changed_at && html`<mark>changed</mark>`}`,
    },
    { title: 'Read', cell: ({ tools_discovered_at }) => html`<${Time} at=${tools_discovered_at} />` },
  ],
  fields: (item) => [
    { name: 'name', label: 'Name', kind: 'text', isRequired: true },
    { name: 'url', label: 'Address', kind: 'text', isRequired: true, hint: 'Of the MCP endpoint (Streamable HTTP).' },
    { name: 'description', label: 'Description', kind: 'longtext' },
    {
      name: 'api_key',
      label: 'API key',
      kind: 'secret',
      hint: item?.api_key_set ? 'One is stored. Left empty, it stays.' : 'Sent as “Authorization: Bearer …”.',
    },
    { name: 'headers', label: 'Headers', kind: 'json', hint: 'As {"X-Name": "value"}. *** keeps a stored value.' },
    {
      name: 'tools_policy',
      label: 'New and changed tools',
      kind: 'choice',
      isRequired: true,
      options: [
        { value: 'accept', label: 'are offered like the others' },
        { value: 'ask', label: 'wait for approval at each call' },
      ],
    },
    ...(item === undefined
      ? []
      : [
          {
            name: 'status',
            label: 'Status',
            kind: 'choice' as const,
            isRequired: true,
            options: ['active', 'disabled'].map((value) => ({ value, label: value })),
          },
        ]),
  ],
  valuesOf: ({ name, url, description, headers, tools_policy, status }): Values => {
    const shown = Object.keys(headers).length > 0 ? headers : null
    return { name, url, description, headers: shown, tools_policy, status }
  },
  create: (values) => api.createMcpServer({ body: values as CreateMcpServerRequest }),
  update: (item, { headers, ...changes }) =>
    // Null would keep the headers.
    update(item, { ...changes, ...(headers !== undefined && { headers: (headers ?? {}) as Record<string, string> }) }),
  actions: [
    {
      label: 'Accept the changed tools',
      isOffered: ({ tools_changed_at }) => Boolean(tools_changed_at),
      run: (item) => update(item, { accept_tools_changed_at: item.tools_changed_at }),
    },
  ],
  remove: {
    label: 'Delete',
    question: ({ name }) => `Delete the MCP server “${name}”? Agents lose its tools.`,
    run: ({ id }) => api.deleteMcpServer({ path: { server_id: id } }),
  },
}
