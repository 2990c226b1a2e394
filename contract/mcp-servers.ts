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
    'What happens with tools that are new or have changed since an administrator accepted them. accept: they are offered like the others. ask: each of their calls waits for approval.',
})
export type McpToolsPolicy = z.infer<typeof McpToolsPolicy>

export const McpServer = z
  .object({
    id: wireId('mcp'),
    ref: z.string().meta({ description: 'Its capability, as agents and sessions name it.' }),
    name: z.string(),
    description: z.string().nullish(),
    url: z.string(),
    transport_type: McpServerTransportType,
    status: McpServerStatus,
    api_key_set: z.boolean(),
    headers: z.record(z.string(), z.string()).meta({ description: 'Names of the headers. Each value is "***".' }),
    tools_policy: McpToolsPolicy,
    tools_count: z.int().min(0).nullish().meta({ description: 'Null before the tools were read for the first time.' }),
    tools_discovered_at: DateTime.nullish().meta({ description: 'When the list of tools was read last.' }),
    tools_changed_at: DateTime.nullish().meta({
      description:
        'When the tools were found to differ from those that an administrator has accepted. Null while they do not.',
    }),
    changed_tools: z.array(z.string()).meta({
      description:
        'Tools that were added, changed or removed since, by their names in the tool_definitions of the capability. Empty while none was.',
    }),
    tools_error: z.string().nullish().meta({ description: 'Why the tools could not be read last.' }),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'McpServer' })
export type McpServer = z.infer<typeof McpServer>

const MAX_URL_BYTES = 2 * 1024
const MAX_DESCRIPTION_BYTES = 10 * 1024

/** Key as it is sent in a header. Spaces around it, as pasting leaves them, are removed. */
const apiKey = textUpTo(MAX_HEADER_VALUE_BYTES)
  .trim()
  .refine((key) => /^[\x21-\x7e]*$/.test(key), { error: 'must be printable ASCII characters without spaces' })
  .meta({ description: 'Sent as a bearer token. Stored encrypted and never shown.' })

const headers = SentHeaders.meta({
  description: 'Sent with each request to the server. Values are stored encrypted and never shown.',
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
        'Accepts the tools as they are now. Has to be the tools_changed_at that was seen; 409 when they have changed again.',
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
        'Its tools are read soon after; GET /v1/capabilities/mcp:{uuid} shows them. Agents and sessions use them by naming that capability.',
      body: CreateMcpServerRequest,
      creates: true,
      responses: { 201: McpServer },
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
      errors: [409],
    },
    delete: {
      operationId: 'deleteMcpServer',
      method: 'DELETE',
      at: '/{server_id}',
      summary: 'Deletes an MCP server; agents that name it go on without its tools',
      params,
      responses: { 204: null },
    },
  },
)
