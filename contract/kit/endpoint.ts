import type { z } from 'zod'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Body that is not JSON, such as an event stream or a page. */
export type RawBody = { contentType: string; description: string }
/** Bytes of any length; a client may request a range. */
export type FileBody = RawBody & { file: true }
export type ResponseBody = z.ZodType | RawBody | FileBody | null

/** Body of type multipart/form-data: one file, after the fields that belong to it. */
export type MultipartBody = { file: FilePart; fields?: z.ZodObject }
/**
 * Limits of a file. A larger file is refused with `tooLargeStatus`, by default 413. `inMemory`: the handler reads all
 * of it, so it counts towards the memory of bodies until it is handled.
 */
export type FilePart = { field: string; maxBytes: number; tooLargeStatus?: 400; inMemory?: true }

/** Body of bytes, of any content type, with the limits of a file part. */
export type RawUpload = Pick<FilePart, 'maxBytes' | 'inMemory'>

/**
 * Callers of an endpoint. `public`: anyone. `login`: any token of a login, even an expired one, so that the login can
 * be ended. `user`: a signed-in user; the endpoint is not about one organization. `member`: a member of the
 * organization. `admin`: a member with the role admin or owner. `operator`: an administrator of the default
 * organization, which belongs to the installation.
 */
export type Access = 'public' | 'login' | 'user' | 'member' | 'admin' | 'operator'

/**
 * Declaration of one operation. The router parses requests with it, tests check every answer against it, and the
 * OpenAPI document is generated from it. `null` is an answer without a body.
 */
export type Endpoint = {
  /** Name of the operation in generated clients: a verb and a noun. Unique. */
  operationId: string
  method: Method
  /**
   * Path with its parameters in braces: /v1/agents/{agent_id}. The last one may take any number of segments, also none:
   * /v1/files/{path*}.
   */
  path: `/${string}`
  tag: string
  access: Access
  /** Refuses API keys: the caller must have signed in. */
  login?: boolean
  summary: string
  description?: string
  params?: z.ZodObject
  query?: z.ZodObject
  body?: z.ZodType
  /** Content types of a text body, with which `body` is a string. Without them the body is JSON. */
  textTypes?: readonly string[]
  /** Declaration of a multipart body, instead of `body`. */
  multipart?: MultipartBody
  /** Accepts the body as bytes: of any content type but JSON beside `body`, of any at all without it. */
  raw?: RawUpload
  /** Maximum size of the body. Default: 2 MiB. */
  bodyLimitBytes?: number
  /** Accepts an empty body as `{}`. */
  bodyOptional?: boolean
  /** Marks an operation that creates something and takes an Idempotency-Key. */
  creates?: boolean
  responses: Partial<Record<200 | 201 | 202 | 204 | 206 | 302 | 304, ResponseBody>>
  /** File that is answered with 200 instead of JSON if the query asks for it. With a 206, ranges may be requested. */
  file?: FileBody
  /** Description of a text/event-stream that is answered with 200, in addition to `responses`. */
  streams?: string
  /** Schema of a streamed event's data, when it is not an event of the log. */
  streamed?: z.ZodType
  /** Error statuses that the rest of the declaration does not imply. */
  errors?: readonly (401 | 403 | 404 | 406 | 409 | 413 | 422 | 429 | 502)[]
}

type GroupDefaults = Pick<Endpoint, 'tag' | 'path' | 'access'>
/** Operation of a group. `at` is the rest of its path; an operation on the group's own path has none. */
type GroupMember = Omit<Endpoint, keyof GroupDefaults> & { at?: `/${string}`; access?: Access }

type Grouped<D extends GroupDefaults, M extends GroupMember> = Omit<M, 'at' | 'access'> & {
  tag: D['tag']
  path: M extends { at: infer Rest extends string } ? `${D['path']}${Rest}` : D['path']
  access: M extends { access: infer A extends Access } ? A : D['access']
}

/**
 * Declares the operations of one resource with a common tag, path and access. Keeps the literal types, so that each
 * handler's parameters are typed by its endpoint.
 */
export function group<const D extends GroupDefaults, const M extends Record<string, GroupMember>>(
  defaults: D,
  members: M,
): { [K in keyof M]: Grouped<D, M[K]> } {
  const endpoints = Object.entries(members).map(([name, { at = '', ...member }]) => [
    name,
    { ...defaults, ...member, path: `${defaults.path}${at}` },
  ])
  // Object.fromEntries loses the relation between keys and types.
  return Object.fromEntries(endpoints)
}

/** Returns the responses of a file: all of it, a range, or nothing if the client already has it. 416 is implied. */
export const fileResponses = (contentType: string, description: string) => {
  const file = fileBody(contentType, description)
  return { 200: file, 206: file, 304: null } as const
}

export const fileBody = (contentType: string, description: string): FileBody => ({
  contentType,
  description,
  file: true,
})

/** Error statuses of every operation: invalid text in the query, a head too large, a bug, Postgres unavailable. */
const ALWAYS = [400, 431, 500, 503]

/** Returns the error statuses that follow from the declaration: its access, path, method, and input. */
export function impliedErrors({ access, path, method, creates, streams, responses }: Endpoint): number[] {
  const isOfOrganization = access !== 'public' && access !== 'login'
  return [
    ...ALWAYS,
    ...(access === 'public' ? [] : [401, 403]),
    // X-Org-Id may name an organization that the caller is not a member of.
    ...(isOfOrganization || path.includes('{') ? [404] : []),
    ...(creates ? [409] : []),
    // A body is read within its limits even where none is expected.
    ...(method === 'GET' ? [] : [408, 413, 415]),
    // Too many requests of the caller, or too many streams.
    ...(isOfOrganization || streams !== undefined ? [429] : []),
    ...(206 in responses ? [416] : []),
  ]
}

/** Returns all error statuses that the operation may answer with, in ascending order. */
export const declaredErrors = (endpoint: Endpoint): number[] =>
  [...new Set([...impliedErrors(endpoint), ...(endpoint.errors ?? [])])].sort((a, b) => a - b)

export const isSchema = (body: ResponseBody | undefined): body is z.ZodType =>
  body !== null && body !== undefined && 'parse' in body

export const isFile = (body: ResponseBody | undefined): body is FileBody =>
  body !== null && body !== undefined && 'file' in body
