import { z } from 'zod'
import { textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { McpServerId } from './kit/ids.ts'

const MAX_KEY_BYTES = 8 * 1024
const MAX_ARGUMENT_BYTES = 64 * 1024
const MAX_ARGUMENTS = 100

const complete = z.boolean().meta({
  description: 'False if some are left out: a list has at most 1,000 and 1 MiB, and none that are malformed.',
})
const described = {
  name: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  mime_type: z.string().optional(),
}

const McpResource = z.object({ uri: z.string(), ...described }).meta({ id: 'McpResource' })
const McpResourceTemplate = z
  .object({
    uri_template: z.string().meta({ description: 'URI template (RFC 6570): filled in, it is the uri of a resource.' }),
    ...described,
  })
  .meta({ id: 'McpResourceTemplate' })

const McpResourceList = z
  .object({ data: z.array(McpResource), templates: z.array(McpResourceTemplate), complete })
  .meta({ id: 'McpResourceList' })
export type McpResourceList = z.infer<typeof McpResourceList>

const content = {
  mime_type: z.string().optional(),
  text: z.string().optional(),
  blob: z.string().optional().meta({ description: 'Bytes of a resource in base64, in place of text.' }),
}

const McpResourceContents = z
  .object({
    contents: z.array(z.object({ uri: z.string(), ...content }).meta({ id: 'McpContent' })),
  })
  .meta({ id: 'McpResourceContents' })
export type McpResourceContents = z.infer<typeof McpResourceContents>

const McpPrompt = z
  .object({
    name: z.string(),
    title: z.string().optional(),
    description: z.string().optional(),
    arguments: z.array(
      z
        .object({ name: z.string(), description: z.string().optional(), required: z.boolean() })
        .meta({ id: 'McpPromptArgument' }),
    ),
  })
  .meta({ id: 'McpPrompt' })

const McpPromptList = z.object({ data: z.array(McpPrompt), complete }).meta({ id: 'McpPromptList' })
export type McpPromptList = z.infer<typeof McpPromptList>

const GetMcpPromptRequest = z
  .object({
    name: textUpTo(MAX_KEY_BYTES),
    arguments: z
      .record(z.string(), textUpTo(MAX_ARGUMENT_BYTES))
      .refine((given) => Object.keys(given).length <= MAX_ARGUMENTS, {
        error: `must have at most ${MAX_ARGUMENTS} entries`,
      })
      .nullish(),
  })
  .meta({ id: 'GetMcpPromptRequest' })
export type GetMcpPromptRequest = z.infer<typeof GetMcpPromptRequest>

const McpPromptPart = z
  .object({
    type: z.enum(['text', 'image', 'audio', 'resource', 'resource_link']),
    ...content,
    data: z.string().optional().meta({ description: 'Bytes of an image or of audio in base64.' }),
    uri: z.string().optional(),
    name: z.string().optional(),
  })
  .meta({ id: 'McpPromptPart' })

const McpPromptMessages = z
  .object({
    description: z.string().optional(),
    messages: z.array(
      z.object({ role: z.enum(['user', 'assistant']), content: McpPromptPart }).meta({ id: 'McpPromptMessage' }),
    ),
  })
  .meta({ id: 'McpPromptMessages' })
export type McpPromptMessages = z.infer<typeof McpPromptMessages>

const params = z.object({ server_id: McpServerId })
const errors = [409, 502] as const

export const mcpReadingEndpoints = group(
  { tag: 'mcp-servers', path: '/v1/mcp-servers', access: 'member' },
  {
    resources: {
      operationId: 'listMcpResources',
      method: 'GET',
      at: '/{server_id}/resources',
      summary: 'Lists the resources of an MCP server, which is asked now',
      description:
        'Empty for a server without resources. A server that acts for users is asked as the caller, who has to sign in there first.',
      params,
      responses: { 200: McpResourceList },
      errors,
    },
    resource: {
      operationId: 'readMcpResource',
      method: 'GET',
      at: '/{server_id}/resources/read',
      summary: 'Reads a resource of an MCP server',
      params,
      query: z.object({ uri: textUpTo(MAX_KEY_BYTES) }),
      responses: { 200: McpResourceContents },
      errors,
    },
    prompts: {
      operationId: 'listMcpPrompts',
      method: 'GET',
      at: '/{server_id}/prompts',
      summary: 'Lists the prompts of an MCP server, which is asked now',
      params,
      responses: { 200: McpPromptList },
      errors,
    },
    prompt: {
      operationId: 'getMcpPrompt',
      method: 'POST',
      at: '/{server_id}/prompts/get',
      summary: 'Returns the messages of a prompt of an MCP server, with arguments filled in',
      params,
      body: GetMcpPromptRequest,
      responses: { 200: McpPromptMessages },
      errors,
    },
  },
)
