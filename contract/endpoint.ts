import type { z } from 'zod'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A body that is not JSON: an event stream, a page. */
export type RawBody = { contentType: string; description: string }
/** Bytes of any length, of which a client may ask for a range. */
export type FileBody = RawBody & { file: true }
export type ResponseBody = z.ZodType | RawBody | FileBody | null

/** A multipart/form-data body: one file, after the fields that belong to it. */
export type MultipartBody = { file: { field: string; maxBytes: number }; fields?: z.ZodObject }

/**
 * Who may call it. `public`: anybody. `login`: who has any token of a login, also one that has ended; it is there to be
 * ended. `user`: who is signed in; it is not about one organization. `member`, `admin`: a
 * member of the organization, one with the role admin or owner. `operator`: an administrator of the default organization,
 * which is that of the installation.
 */
export type Access = 'public' | 'login' | 'user' | 'member' | 'admin' | 'operator'

/**
 * One operation, declared once: the router parses the request with it, the tests check every answer with it, and
 * the OpenAPI document is made of it. `null` is an answer without a body.
 */
export type Endpoint = {
  method: Method
  /** Path parameters in braces: /v1/agents/{agent_id}; the last may take all that follows: /v1/files/{path*}. */
  path: `/${string}`
  tag: string
  access: Access
  /** Not for API keys: what it does needs somebody who has signed in. */
  login?: boolean
  summary: string
  description?: string
  params?: z.ZodObject
  query?: z.ZodObject
  body?: z.ZodType
  /** Content types of a body that is text, with which `body` is a string; without them it is JSON. */
  textTypes?: readonly string[]
  /** Instead of `body`. */
  multipart?: MultipartBody
  /** Default: 2 MiB. */
  bodyLimitBytes?: number
  /** An empty body is accepted as `{}`. */
  bodyOptional?: boolean
  /** It creates something, and takes an Idempotency-Key. */
  creates?: boolean
  responses: Partial<Record<200 | 201 | 202 | 204 | 206 | 302 | 304, ResponseBody>>
  /** Besides `responses`, a text/event-stream answers 200. */
  streams?: string
  /** The data of a streamed event, when it is not an event of the log. */
  streamed?: z.ZodType
  /** Error statuses that the rest of the declaration does not imply. */
  errors?: readonly (401 | 403 | 404 | 409 | 413 | 422 | 429 | 502)[]
}

type GroupDefaults = Pick<Endpoint, 'tag' | 'path' | 'access'>
/** `at` is the rest of the path; an operation of the group's own path has none. */
type GroupMember = Omit<Endpoint, keyof GroupDefaults> & { at?: `/${string}`; access?: Access }

type Grouped<D extends GroupDefaults, M extends GroupMember> = Omit<M, 'at' | 'access'> & {
  tag: D['tag']
  path: M extends { at: infer Rest extends string } ? `${D['path']}${Rest}` : D['path']
  access: M extends { access: infer A extends Access } ? A : D['access']
}

/**
 * Operations of one resource, whose tag, path and access are declared once. Keeps the literal types, so that a handler's
 * parameters are typed by its endpoint.
 */
export function group<const D extends GroupDefaults, const M extends Record<string, GroupMember>>(
  defaults: D,
  members: M,
): { [K in keyof M]: Grouped<D, M[K]> } {
  const endpoints = Object.entries(members).map(([name, { at = '', ...member }]) => [
    name,
    { ...defaults, ...member, path: `${defaults.path}${at}` },
  ])
  // Object.fromEntries forgets which key has which type.
  return Object.fromEntries(endpoints)
}

/** Statuses of a file: all of it, a range of it, nothing that the client does not have; 416 is implied. */
export const fileResponses = (contentType: string, description: string) => {
  const file: FileBody = { contentType, description, file: true }
  return { 200: file, 206: file, 304: null } as const
}

/** Error statuses that any operation may answer: bad text in the query, a bug, Postgres away. */
const ALWAYS = [400, 500, 503]

/** Error statuses that follow from the declaration: its access, path, method, and what it takes. */
export function impliedErrors({ access, path, method, creates, streams, responses }: Endpoint): number[] {
  const isOfOrganization = access !== 'public' && access !== 'login'
  return [
    ...ALWAYS,
    ...(access === 'public' ? [] : [401, 403]),
    // X-Org-Id may name an organization that the caller is not a member of.
    ...(isOfOrganization || path.includes('{') ? [404] : []),
    ...(creates ? [409] : []),
    // A body is read within its limits even where none is asked for.
    ...(method === 'GET' ? [] : [408, 413, 415]),
    ...(streams === undefined ? [] : [429]),
    ...(206 in responses ? [416] : []),
  ]
}

/** Every error status that the operation may answer with, in ascending order. */
export const declaredErrors = (endpoint: Endpoint): number[] =>
  [...new Set([...impliedErrors(endpoint), ...(endpoint.errors ?? [])])].sort((a, b) => a - b)

export const isSchema = (body: ResponseBody | undefined): body is z.ZodType =>
  body !== null && body !== undefined && 'parse' in body

export const isFile = (body: ResponseBody | undefined): body is FileBody =>
  body !== null && body !== undefined && 'file' in body
