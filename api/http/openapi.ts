import { z } from 'zod'
import { ErrorResponse } from '../../contract/errors.ts'
import { isUnsupported } from '../../contract/kit/common.ts'
import {
  declaredErrors,
  type Endpoint,
  isFile,
  isSchema,
  type MultipartBody,
  type ResponseBody,
} from '../../contract/kit/endpoint.ts'
import { examples } from '../../contract/kit/examples.ts'
import { OrganizationId } from '../../contract/kit/ids.ts'

const REASONS: Record<string, string> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No content',
  206: 'The range that was asked for',
  302: 'Redirect',
  304: 'Not changed',
  400: 'The request is not valid',
  401: 'Authentication required',
  403: 'Not allowed',
  404: 'Not found',
  408: 'The request did not arrive in time',
  409: 'Conflict',
  413: 'Too large',
  415: 'The body is of another type',
  416: 'There is no such range',
  422: 'Cannot be processed',
  429: 'Too many requests',
  431: 'The request head is too large',
  500: 'Internal server error',
  502: 'A provider failed',
  503: 'Not available',
}

/** Guides that api/pages/docs.ts serves beside the document, in the order to read them. */
export const GUIDES = [
  { name: 'building-a-chat', title: 'Building a chat' },
  { name: 'events', title: 'Events' },
  { name: 'errors', title: 'Errors' },
  { name: 'authentication', title: 'Authentication' },
  { name: 'simulator', title: 'Models without a provider' },
  { name: 'limits', title: 'Limits' },
] as const

/** `isOpen`: the service knows no users, so that nobody needs credentials. */
export type DocumentOptions = { version: string; prefix: string; isOpen: boolean }

/** Builds the OpenAPI 3.1 document of the endpoints, from the schemas that requests are parsed with. */
export function openapiDocument(endpoints: Endpoint[], options: DocumentOptions) {
  const schemas: Schemas = {}
  const paths: Record<string, Record<string, unknown>> = {}
  for (const endpoint of endpoints) {
    const plain = endpoint.path.replace('*}', '}')
    const path = plain.startsWith('/v1/') ? options.prefix + plain : plain
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint, schemas, options) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent Session Service',
      version: options.version,
      description:
        'Hosts configurable AI agents and runs them in durable sessions, over REST and Server-Sent Events.\n\n' +
        `Guides: ${GUIDES.map(({ name, title }) => `[${title}](docs/${name}.md)`).join(', ')}.`,
    },
    externalDocs: { description: GUIDES[0].title, url: `docs/${GUIDES[0].name}.md` },
    // Relative to the host and scheme that serve the document.
    servers: [{ url: '/' }],
    tags: [...new Set(endpoints.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { schemas, ...(options.isOpen ? {} : { securitySchemes: SECURITY_SCHEMES }) },
  }
}

type Schemas = Record<string, unknown>

const SECURITY_SCHEMES = {
  bearerAuth: { type: 'http', scheme: 'bearer', description: 'An access token or an API key.' },
  cookieAuth: { type: 'apiKey', in: 'cookie', name: 'access_token' },
}

function operation(endpoint: Endpoint, schemas: Schemas, { isOpen }: DocumentOptions) {
  return {
    operationId: endpoint.operationId,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    ...(endpoint.description === undefined ? {} : { description: endpoint.description }),
    parameters: [
      ...pathParameters(endpoint, schemas),
      ...parameters(endpoint.query, 'query', schemas),
      ...(isOfOrganization(endpoint) ? [ORGANIZATION] : []),
      ...(endpoint.creates ? [IDEMPOTENCY_KEY] : []),
      ...(206 in endpoint.responses ? OF_FILES : []),
    ],
    ...requestBody(endpoint, schemas),
    responses: responses(endpoint, schemas),
    security: isOpen || endpoint.access === 'public' ? [] : [{ bearerAuth: [] }, { cookieAuth: [] }],
  }
}

function parameters(schema: z.ZodObject | undefined, where: 'path' | 'query', schemas: Schemas) {
  const shown = Object.entries(schema?.shape ?? {}).filter(([, field]) => !isUnsupported(field))
  return shown.map(([name, field]) => ({
    name,
    in: where,
    required: where === 'path',
    schema: jsonSchema(field as z.ZodType, 'input', schemas),
  }))
}

const ORGANIZATION = {
  name: 'X-Org-Id',
  in: 'header',
  required: false,
  schema: jsonSchema(OrganizationId, 'input', {}),
  description:
    "The organization that the request is about. Default: switch-org's cookie, else the user's first organization. " +
    'An API key always uses its own.',
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  description:
    'Makes the request repeatable: for 24 hours the same key with the same request gets the first answer, and with another one 409.',
}

const header = (name: string, description: string) => ({
  name,
  in: 'header',
  required: false,
  schema: { type: 'string' },
  description,
})

const OF_FILES = [
  header('If-None-Match', 'ETags of what the client has: with one of them the answer is 304.'),
  header('Range', 'One range of bytes, which is answered with 206; of several the whole is given.'),
  header(
    'If-Range',
    'The ETag of what the client has the rest of; the range of another one is answered with the whole.',
  ),
]

/**
 * Returns the path's parameters. OpenAPI has no parameter of several segments, so encoded slashes are accepted in them,
 * too.
 */
function pathParameters({ path, params }: Endpoint, schemas: Schemas) {
  return parameters(params, 'path', schemas).map((parameter) =>
    path.endsWith(`{${parameter.name}*}`)
      ? { ...parameter, description: 'One or more segments; their slashes may be encoded.' }
      : parameter,
  )
}

function requestBody(endpoint: Endpoint, schemas: Schemas) {
  const { body, multipart, raw, bodyOptional, textTypes = ['application/json'] } = endpoint
  if (multipart !== undefined) return { requestBody: { required: true, content: form(multipart) } }
  const bytes = raw && { 'application/octet-stream': { schema: BINARY } }
  if (body === undefined) return bytes ? { requestBody: { required: true, content: bytes } } : {}
  const media = { schema: jsonSchema(body, 'input', schemas), example: examples[endpoint.operationId] }
  const content = Object.fromEntries(textTypes.map((type) => [type, media]))
  return { requestBody: { required: bodyOptional !== true, content: { ...content, ...bytes } } }
}

const BINARY = { type: 'string', format: 'binary' }

function form({ file, fields = z.object({}) }: MultipartBody) {
  const { properties = {}, required = [] } = z.toJSONSchema(fields, { io: 'input', unrepresentable: 'any' })
  const bytes = { ...BINARY, description: `At most ${file.maxBytes} bytes; comes last.` }
  const schema = {
    type: 'object',
    properties: { ...properties, [file.field]: bytes },
    required: [...required, file.field],
  }
  return { 'multipart/form-data': { schema } }
}

const isOfOrganization = ({ access }: Endpoint): boolean => access !== 'public' && access !== 'login'

function responses(endpoint: Endpoint, schemas: Schemas) {
  const good = Object.entries(endpoint.responses).map(([status, body]) => [status, response(status, body, schemas)])
  const bad = declaredErrors(endpoint).map((status) => [status, response(`${status}`, ErrorResponse, schemas)])
  const all: Record<string, { description: string; content?: Record<string, unknown> }> = Object.fromEntries([
    ...good,
    ...bad,
  ])
  if (endpoint.file !== undefined && all[200] !== undefined) {
    all[200].content = { ...all[200].content, [endpoint.file.contentType]: { schema: BINARY } }
  }
  if (endpoint.streams !== undefined) {
    const ok = all[200] ?? { description: endpoint.streams }
    const schema = { type: 'string', ...dataOf(endpoint, schemas) }
    all[200] = { ...ok, content: { ...ok.content, 'text/event-stream': { schema } } }
  }
  return all
}

/** Describes the JSON in the `data` of a stream's events. OpenAPI 3.1 cannot describe the events themselves. */
const dataOf = ({ streamed }: Endpoint, schemas: Schemas) =>
  streamed && { contentMediaType: 'application/json', contentSchema: jsonSchema(streamed, 'output', schemas) }

function response(status: string, body: ResponseBody | undefined, schemas: Schemas) {
  const description = REASONS[status] ?? status
  if (body === null || body === undefined) return { description }
  if (!isSchema(body)) {
    return { description: body.description, content: { [body.contentType]: isFile(body) ? { schema: BINARY } : {} } }
  }
  return { description, content: { 'application/json': { schema: jsonSchema(body, 'output', schemas) } } }
}

/** Returns a schema's JSON Schema. Schemas with an id are put into components once and referenced. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output', schemas: Schemas): unknown {
  const {
    $schema: _,
    $defs,
    ...own
  } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    reused: 'inline',
    override: ({ zodSchema, jsonSchema }) => {
      keepToMeta(zodSchema, jsonSchema)
      leaveOutNoise(jsonSchema)
      leaveOutUnsupported(zodSchema, jsonSchema)
      allowMoreFields(jsonSchema)
      addDiscriminator(zodSchema, jsonSchema)
      formatNumbers(jsonSchema)
    },
  })
  for (const [name, definition] of Object.entries($defs ?? {})) schemas[name] ??= pointAtComponents(definition)
  return pointAtComponents(named(own, schemas))
}

/** Describes a schema whose meta gives its type by that alone: a query's number is parsed from a string. */
function keepToMeta(schema: z.core.$ZodType, described: Record<string, unknown>): void {
  const meta = z.globalRegistry.get(schema)
  if (meta?.type === undefined) return
  for (const key of Object.keys(described)) if (!(key in meta)) delete described[key]
}

/** Leaves out a time's pattern, which its format implies, and the bounds of JavaScript's integers. */
function leaveOutNoise(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.format === 'date-time') delete schema.pattern
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
}

/** Leaves out fields that exist only to be refused. */
function leaveOutUnsupported(zodSchema: z.core.$ZodType, { properties = {} }: z.core.JSONSchema.BaseSchema): void {
  if (!(zodSchema instanceof z.ZodObject)) return
  for (const [name, field] of Object.entries(zodSchema.shape)) if (isUnsupported(field)) delete properties[name]
}

/** Allows additional fields: answers may get new ones, and clients must ignore those they do not know. */
function allowMoreFields(schema: { additionalProperties?: unknown }): void {
  if (schema.additionalProperties === false) delete schema.additionalProperties
}

/** Maps the values of a union's discriminator to its members, so that generated clients narrow it. */
function addDiscriminator({ _zod }: z.core.$ZodTypes, schema: Record<string, unknown>): void {
  if (_zod.def.type !== 'union' || !('discriminator' in _zod.def)) return
  const { discriminator: propertyName, options } = _zod.def as z.core.$ZodDiscriminatedUnionDef
  const mapping = options.flatMap((member) =>
    [...(member._zod.propValues?.[propertyName] ?? [])].map((value) => [
      String(value),
      `#/components/schemas/${z.globalRegistry.get(member)?.id}`,
    ]),
  )
  schema.discriminator = { propertyName, mapping: Object.fromEntries(mapping) }
}

/** Says how large a number may become. Integers that may pass 32 bits have their format in the contract. */
function formatNumbers(schema: z.core.JSONSchema.BaseSchema): void {
  const types = [schema.type].flat()
  if (types.includes('number')) schema.format ??= 'double'
  if (types.includes('integer')) schema.format ??= 'int32'
}

function named(own: Record<string, unknown>, schemas: Schemas): unknown {
  const { id, ...rest } = own
  if (typeof id !== 'string') return own
  schemas[id] ??= pointAtComponents(rest)
  return { $ref: `#/components/schemas/${id}` }
}

function pointAtComponents(schema: unknown): unknown {
  const { id: _, ...rest } = JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'))
  return rest
}
