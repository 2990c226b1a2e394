import { z } from 'zod'
import { DateTime, listOf, nameUpTo, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { McpServerId, OrganizationId, wireId } from './kit/ids.ts'
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

const As = z.enum(['organization', 'user'])
const MAX_SCOPES = 50

const McpOauth = z
  .object({
    as: As.meta({
      description: 'organization: one sign-in for all turns. user: each turn acts as the user who wrote its message.',
    }),
    scopes: z.array(z.string()),
    client_id: z.string().nullable().meta({ description: 'Null for a client that registers itself.' }),
    client_secret_set: z.boolean(),
    connected: z.boolean().meta({ description: 'Whether the organization, or the caller, has signed in there.' }),
  })
  .meta({ id: 'McpOauth' })

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
    oauth: McpOauth.nullish().meta({ description: 'Null if the service does not sign in there.' }),
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

const McpOauthRequest = z
  .object({
    as: z.enum(['none', ...As.options]).meta({ description: 'none: the service does not sign in there.' }),
    scopes: z
      .array(textUpTo(256).regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, { error: 'must be a scope, without spaces' }))
      .max(MAX_SCOPES)
      .nullish()
      .meta({ description: 'Asked for in addition to the scopes that the server names.' }),
    client_id: textUpTo(2048).nullish().meta({ description: 'Of a client that is registered by hand.' }),
    client_secret: apiKey.nullish().meta({ description: 'Stored encrypted and never shown. *** keeps it.' }),
  })
  .meta({ id: 'McpOauthRequest' })
export type McpOauthRequest = z.infer<typeof McpOauthRequest>

const CreateMcpServerRequest = z
  .object({
    name: nameUpTo(255),
    url,
    description: description.nullish(),
    transport_type: McpServerTransportType.optional(),
    api_key: apiKey.nullish(),
    headers: headers.nullish(),
    oauth: McpOauthRequest.nullish(),
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
    oauth: McpOauthRequest.nullish().meta({ description: 'Replaces all of it. A change ends the sign-ins there.' }),
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
    connect: {
      operationId: 'connectMcpServer',
      method: 'POST',
      at: '/{server_id}/connect',
      access: 'member',
      summary: 'Begins a sign-in at an MCP server, as the organization or as the caller',
      description:
        'A browser in which the caller is signed in here has to open the address within ten minutes. Administrators begin sign-ins of the organization.',
      params,
      responses: { 200: z.object({ authorization_url: z.string() }).meta({ id: 'McpSignIn' }) },
      errors: [409, 502],
    },
    visit: {
      operationId: 'visitMcpServer',
      method: 'GET',
      at: '/{server_id}/connect',
      access: 'member',
      summary: 'Redirects a browser to the sign-in at an MCP server',
      params,
      query: z.object({
        org: OrganizationId.optional().meta({
          description: 'Organization of the server. Default: the selected one.',
        }),
      }),
      responses: { 302: null },
      errors: [409, 502],
    },
    disconnect: {
      operationId: 'disconnectMcpServer',
      method: 'DELETE',
      at: '/{server_id}/grant',
      access: 'member',
      summary: 'Ends the sign-in of the organization or of the caller, and deletes its tokens',
      params,
      responses: { 204: null },
      errors: [409],
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

export const mcpSignInEndpoints = group(
  { tag: 'mcp-servers', path: '/v1/mcp-sign-in', access: 'public' },
  {
    finish: {
      operationId: 'finishMcpSignIn',
      method: 'GET',
      at: '/callback',
      summary: 'Receives the browser from the authorization server of an MCP server',
      query: z.object({
        code: textUpTo(4096).optional(),
        state: textUpTo(4096).optional(),
        error: textUpTo(4096).optional(),
        iss: textUpTo(4096).optional(),
      }),
      responses: { 200: { contentType: 'text/html', description: 'A page that says that it is done' } },
      errors: [401, 403, 404, 429, 502],
    },
  },
)
