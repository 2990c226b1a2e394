import { z } from 'zod'
import { isUnsupported } from '../contract/kit/common.ts'
import { type Endpoint, isSchema, type ResponseBody } from '../contract/kit/endpoint.ts'

/** Writes the module of the typed client that has all operations, grouped by their tags: their types, and a table. */
export function operationsModule(endpoints: Endpoint[]): string {
  const groups = Map.groupBy(endpoints, ({ tag }) => camelCase(tag))
  const write = (line: (endpoint: Endpoint) => string): string =>
    [...groups].map(([name, members]) => `  ${name}: {\n${members.map(line).join('')}  }\n`).join('')
  for (const [name, members] of groups) {
    const verbs = new Set(members.map(verbOf))
    if (verbs.size < members.length) throw new Error(`client.${name} has two operations of one name`)
  }
  for (const endpoint of endpoints) {
    const names = argumentsOf(endpoint)
    if (new Set(names).size < names.length) throw new Error(`${endpoint.operationId} has two parameters of one name`)
  }
  return `import type { Operation, Row, Stream } from '../operation.ts'
import type * as T from './types.gen.ts'

/** Operations of the service by their tags. They throw ApiError and are not repeated. */
export type Operations = {
${write((endpoint) => `    /** ${textOf(endpoint)} */\n    ${verbOf(endpoint)}: ${typeOf(endpoint)}\n`)}}

export const table: { [G in keyof Operations]: Record<keyof Operations[G], Row> } = {
${write((endpoint) => `    ${verbOf(endpoint)}: ${JSON.stringify(rowOf(endpoint))},\n`).replaceAll('  }\n', '  },\n')}}
`
}

const camelCase = (text: string): string => text.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Returns `list` for listAgents among agents, and the whole name where it is about something else. */
export function verbOf({ operationId, tag }: Pick<Endpoint, 'operationId' | 'tag'>): string {
  const [, verb = '', noun] = /^([a-z]+)(.*)$/.exec(operationId) ?? []
  const plural = capital(camelCase(tag))
  return [plural, plural.replace(/ies$/, 'y'), plural.replace(/s$/, '')].includes(noun ?? '') ? verb : operationId
}

const shownOf = ({ shape }: z.ZodObject): string[] => Object.keys(shape).filter((name) => !isUnsupported(shape[name]))

/** Returns the names of all that an operation is given. They share one object. */
const argumentsOf = ({ params, query, body, multipart }: Endpoint): string[] =>
  [params, query, body, multipart?.fields].flatMap((schema) => (schema instanceof z.ZodObject ? shownOf(schema) : []))

const textOf = ({ summary, description }: Endpoint): string =>
  (description === undefined ? summary : `${summary}. ${description}`).replaceAll('*/', '* /')

function typeOf(endpoint: Endpoint): string {
  const name = capital(endpoint.operationId)
  if (isStream(endpoint))
    return `Stream<T.${name}Data, ${endpoint.streamed ? `T.${endpoint.streamed.meta()?.id}` : 'T.Event'}>`
  const { 200: usual } = endpoint.responses
  // An operation that answers JSON unless bytes are asked for would have a type that is either everywhere.
  const results = Object.entries(endpoint.responses).flatMap(([status, body]) =>
    status === '206' && isSchema(usual) ? [] : resultOf(name, status, body),
  )
  return `Operation<T.${name}Data, ${[...new Set(results)].join(' | ') || 'unknown'}>`
}

function resultOf(name: string, status: string, body: ResponseBody | undefined): string[] {
  if (status >= '300') return []
  if (body === null || body === undefined) return ['void']
  if (isSchema(body)) return [`T.${name}Responses[${status}]`]
  return [body.contentType.startsWith('text/') ? 'string' : 'Blob']
}

/** Reports whether all that the operation answers with is a stream. */
const isStream = ({ streams, responses }: Endpoint): boolean =>
  streams !== undefined && Object.values(responses).every((body) => body === null)

function rowOf(endpoint: Endpoint): string[] {
  const { method, path, query, multipart, textTypes: [textType] = [] } = endpoint
  const type = isStream(endpoint) ? 'events' : multipart ? 'multipart/form-data' : textType
  const names = query === undefined ? '' : shownOf(query).join(' ')
  return [method, path, ...(names !== '' || type !== undefined ? [names] : []), ...(type === undefined ? [] : [type])]
}
