import { gzipSync } from 'node:zlib'

const MIB = 1024 * 1024

export type Route = {
  name: string
  method: 'POST' | 'PUT' | 'PATCH'
  path: string
  type: string
  limitBytes: number
  /** Puts a hostile value into a field of the route. */
  wrap: (value: string) => string
  isAnonymous?: boolean
}

export type Places = { agentId: string; sessionId: string }

const json = { type: 'application/json', limitBytes: 2 * MIB }
const agent = (field: string) => (value: string) => `{"name":"n","system_prompt":"s","${field}":${value}}`
const asIs = (value: string): string => value

/** Returns the routes with a body, some of them with the value in several fields. */
export function hostileRoutes({ agentId, sessionId }: Places): Route[] {
  const session = `/v1/sessions/${sessionId}`
  const post = { ...json, method: 'POST' as const }
  const agents = { ...post, path: '/v1/agents', limitBytes: 3 * MIB }
  return [
    { ...post, name: 'login', path: '/v1/auth/login', wrap: asIs, isAnonymous: true },
    { ...post, name: 'api-keys', path: '/v1/auth/api-keys', wrap: (value) => `{"name":"n","scopes":${value}}` },
    { ...post, name: 'organizations', path: '/v1/orgs', wrap: asIs },
    { ...agents, name: 'agents tools', wrap: agent('tools') },
    { ...agents, name: 'agents capabilities', wrap: agent('capabilities') },
    { ...agents, name: 'agents preview', path: '/v1/agents/preview', wrap: agent('tags') },
    { ...agents, name: 'agents put', method: 'PUT', path: `/v1/agents/${agentId}`, wrap: agent('tags') },
    { ...agents, name: 'agents patch', method: 'PATCH', path: `/v1/agents/${agentId}`, wrap: agent('unknown') },
    { ...agents, name: 'import JSON', path: '/v1/agents/import', wrap: agent('tools') },
    { ...agents, name: 'import YAML', path: '/v1/agents/import', type: 'application/yaml', wrap: agent('tools') },
    { ...agents, name: 'import text', path: '/v1/agents/import', type: 'text/plain', wrap: (value) => `---\n${value}` },
    { ...post, name: 'sessions', path: '/v1/sessions', wrap: (value) => `{"tags":${value}}` },
    { ...json, name: 'session patch', method: 'PATCH', path: session, wrap: (value) => `{"unknown":${value}}` },
    {
      ...post,
      name: 'messages content',
      path: `${session}/messages`,
      wrap: (value) => `{"message":{"content":${value}}}`,
    },
    {
      ...post,
      name: 'messages metadata',
      path: `${session}/messages`,
      wrap: (value) => `{"message":{"content":[]},"metadata":{"x":${value}}}`,
    },
    { ...post, name: 'cancel', path: `${session}/cancel`, wrap: asIs },
    {
      ...post,
      name: 'tool-results',
      path: `${session}/tool-results`,
      limitBytes: 16 * MIB,
      wrap: (value) => `{"tool_results":${value}}`,
    },
    {
      ...post,
      name: 'tool-results result',
      path: `${session}/tool-results`,
      limitBytes: 16 * MIB,
      wrap: (value) => `{"tool_results":[{"tool_call_id":"x","result":${value}}]}`,
    },
  ]
}

/** Number of values and keys just below the limit. */
const ALLOWED = 49_000

const list = (count: number, item: (n: number) => string) => Array.from({ length: count }, (_, n) => item(n)).join(',')
const fill = (bytes: number, piece: string): string => piece.repeat(Math.floor(bytes / piece.length))
const text = (bytes: number, piece: string): string => `"${fill(bytes, piece)}"`

/** Values of about `bytes` bytes. Names that end in `allowed` have the maximum number of parts. */
const SHAPES: Record<string, (bytes: number) => string> = {
  'deep arrays': (bytes) => fill(bytes, '['),
  'deep objects': (bytes) => fill(bytes, '{"a":'),
  'wide array': (bytes) => `[${fill(bytes - 10, '0,')}0]`,
  'wide array allowed': () => `[${list(ALLOWED, () => '0')}]`,
  'wide objects': (bytes) => `[${fill(bytes - 10, '{},')}0]`,
  'wide objects allowed': () => `[${list(ALLOWED / 2, () => '{}')}]`,
  'many keys': (bytes) => `{${list(bytes / 12, (n) => `"k${n}":0`)}}`,
  'many keys allowed': () => `{${list(ALLOWED / 2, (n) => `"k${n}":0`)}}`,
  'objects of other keys allowed': () => `[${list(ALLOWED / 4, (n) => `{"k${n}":0}`)}]`,
  'texts allowed': (bytes) => `[${list(ALLOWED, (n) => `"${'x'.repeat(Math.floor(bytes / ALLOWED) - 12)}${n}"`)}]`,
  'duplicate keys': (bytes) => `{${fill(bytes - 10, '"a":0,')}"a":0}`,
  'one long string': (bytes) => text(bytes, 'x'),
  'letters of two bytes': (bytes) => text(bytes / 2, 'é'),
  'string of escapes': (bytes) => text(bytes, '\\n'),
  'string of surrogates': (bytes) => text(bytes, '\\ud83e\\udd89'),
  'string of NULs': (bytes) => text(bytes, '\\u0000'),
  'long key over many texts': (bytes) => `{${text(bytes / 2, 'k')}:["\\u0007",${list(40_000, (n) => `"${n}"`)}]}`,
  'huge number': (bytes) => fill(bytes, '1'),
  'long numbers': (bytes) => `[${list(bytes / 1010, () => `1.${'7'.repeat(1000)}`)}]`,
  blanks: (bytes) => `${fill(bytes, ' ')}1`,
  'invalid UTF-8': (bytes) => text(bytes, '\xff'),
}

export type HostileBody = { route: Route; shape: string; plain: Uint8Array; gzip: Uint8Array }

const MARGIN = 200

/** Yields each shape for each route, as large as the route's limit. */
export function* hostileBodies(routes: Route[]): Iterable<HostileBody> {
  for (const route of routes) {
    for (const [shape, make] of Object.entries(SHAPES)) {
      const encoding = shape === 'invalid UTF-8' ? 'latin1' : 'utf8'
      const plain = Buffer.from(route.wrap(make(route.limitBytes - MARGIN)), encoding)
      yield { route, shape, plain, gzip: gzipSync(plain) }
    }
  }
}
