import { z } from 'zod'
import { DateTime, listOf, nameUpTo, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { McpServerId, wireId } from './kit/ids.ts'
import { MAX_HEADER_VALUE_BYTES, SentHeaders } from './kit/sent-headers.ts'

const McpServerTransportType = z.enum(['http']).meta({ id: 'McpServerTransportType', description: 'Streamable HTTP.' })

const McpServerStatus = z
  .enum(['active', 'disabled'])
  .meta({ id: 'McpServerStatus', description: 'A disabled server stays in the list and is not used.' })

const McpToolsPolicy = z.enum(['accept', 'ask']).meta({
  id: 'McpToolsPolicy',
  description:
    'How to treat tools that were added or changed since an administrator accepted the tools. accept: offer them like the others. ask: each of their calls waits for approval.',
})
export type McpToolsPolicy = z.infer<typeof McpToolsPolicy>

export const McpServer = z
  .object({
    id: wireId('mcp'),
    ref: z.string().meta({ description: 'Its capability, for agents and sessions.' }),
    name: z.string(),
    description: z.string().nullish(),
    url: z.string(),
    transport_type: McpServerTransportType,
    status: McpServerStatus,
    api_key_set: z.boolean(),
    headers: z.record(z.string(), z.string()).meta({ description: 'Names of the headers, each with the value "***".' }),
    tools_policy: McpToolsPolicy,
    tools_count: z.int().min(0).nullish().meta({ description: 'Null until the tools have been read.' }),
    tools_discovered_at: DateTime.nullish().meta({ description: 'Time of the latest read of the tools.' }),
    tools_changed_at: DateTime.nullish().meta({
      description:
        'Time at which the tools were found to differ from the accepted ones. Null while they do not differ.',
    }),
    changed_tools: z.array(z.string()).meta({
      description:
        'Tools that were added, changed or removed since an administrator accepted the tools, by their names in the tool_definitions of the capability. Empty if there are none.',
    }),
    tools_error: z.string().nullish().meta({ description: 'Why the latest read of the tools failed.' }),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'McpServer' })
export type McpServer = z.infer<typeof McpServer>

const MAX_URL_BYTES = 2 * 1024
const MAX_DESCRIPTION_BYTES = 10 * 1024

/** Key for a header. Spaces around it, left by pasting, are removed. */
const apiKey = textUpTo(MAX_HEADER_VALUE_BYTES)
  .trim()
  .refine((key) => /^[\x21-\x7e]*$/.test(key), { error: 'must be printable ASCII characters without spaces' })
  .meta({ description: 'Sent as a bearer token. Stored encrypted and never shown.' })

const headers = SentHeaders.meta({
  description:
    'Sent with each request to the server. Values are stored encrypted and never shown; {{secret:NAME}} in one is a secret of the organization.',
})

const url = textUpTo(MAX_URL_BYTES).meta({ description: 'Public http or https address of the MCP endpoint.' })
const description = textUpTo(MAX_DESCRIPTION_BYTES)

const CreateMcpServerRequest = z
  .object({
    name: nameUpTo(255),
    url,
    description: description.nullish(),
    transport_type: McpServerTransportType.optional(),
    api_key: apiKey.nullish(),
    headers: headers.nullish(),
    tools_policy: McpToolsPolicy.nullish(),
  })
  .meta({ id: 'CreateMcpServerRequest' })
export type CreateMcpServerRequest = z.infer<typeof CreateMcpServerRequest>

const UpdateMcpServerRequest = z
  .object({
    name: nameUpTo(255).nullish(),
    url: url.nullish(),
    description: description.nullish(),
    transport_type: McpServerTransportType.nullish(),
    api_key: apiKey.nullish().meta({ description: '"" removes the key, and *** keeps it.' }),
    headers: headers.nullish().meta({ description: 'Replaces all headers. A value of *** keeps the stored one.' }),
    status: McpServerStatus.nullish(),
    tools_policy: McpToolsPolicy.nullish(),
    accept_tools_changed_at: DateTime.nullish().meta({
      description:
        'Accepts the current tools. Must be the latest tools_changed_at; 409 if the tools have changed again.',
    }),
  })
  .meta({ id: 'UpdateMcpServerRequest' })
export type UpdateMcpServerRequest = z.infer<typeof UpdateMcpServerRequest>

const params = z.object({ server_id: McpServerId })

export const mcpServerEndpoints = group(
  { tag: 'mcp-servers', path: '/v1/mcp-servers', access: 'admin' },
  {
    list: {
      operationId: 'listMcpServers',
      method: 'GET',
      access: 'member',
      summary: 'Lists the MCP servers, newest first',
      responses: { 200: listOf(McpServer) },
    },
    create: {
      operationId: 'createMcpServer',
      method: 'POST',
      summary: 'Adds an MCP server',
      description:
        'Its tools are read soon after; GET /v1/capabilities/mcp:{uuid} shows them. Agents and sessions that name this capability can use them.',
      body: CreateMcpServerRequest,
      creates: true,
      responses: { 201: McpServer },
      errors: [422],
    },
    get: {
      operationId: 'getMcpServer',
      method: 'GET',
      at: '/{server_id}',
      access: 'member',
      summary: 'Gets an MCP server',
      params,
      responses: { 200: McpServer },
    },
    patch: {
      operationId: 'updateMcpServer',
      method: 'PATCH',
      at: '/{server_id}',
      summary: 'Changes an MCP server, or accepts its changed tools',
      params,
      body: UpdateMcpServerRequest,
      responses: { 200: McpServer },
      errors: [409, 422],
    },
    delete: {
      operationId: 'deleteMcpServer',
      method: 'DELETE',
      at: '/{server_id}',
      summary: 'Deletes an MCP server; agents that name it continue without its tools',
      params,
      responses: { 204: null },
    },
  },
)
