import type Router from '@koa/router'
import type { Context } from 'koa'
import { z } from 'zod'
import { type Endpoint, isSchema, type RawBody } from '../../contract/endpoint.ts'
import type { Actor } from '../../domain/actor.ts'
import type { Credential } from '../../domain/auth/caller.ts'
import type { Deps } from '../../domain/deps.ts'
import { type CreationAttempt, runOnce } from '../../domain/idempotency-keys.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import { DEFAULT_BODY_BYTES, readJson, readText } from './body.ts'
import { RequestError } from './errors.ts'
import { checkText } from './text.ts'

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined

/** What a handler works with: everything is parsed by the endpoint's schemas. */
export type Request<E extends Endpoint> = {
  params: Parsed<E['params']>
  query: Parsed<E['query']>
  body: Parsed<E['body']>
  /** Undefined where anybody may call. */
  actor: E['access'] extends 'public' | 'login' ? undefined : Actor
  /** By what the caller is known; undefined where nobody signs in. */
  credential: Credential | undefined
  ctx: Context
  /** Wraps what the request creates: with an Idempotency-Key it is created once, and its answer is the first one. */
  once: <T>(create: (attempt: CreationAttempt) => Promise<T>) => Promise<T>
}

type BodyOf<B> = B extends z.ZodType ? z.input<B> : B extends RawBody ? string : undefined
/** One of the endpoint's answers. A handler that streams writes to ctx itself and returns undefined. */
export type Answer<E extends Endpoint> = {
  [S in keyof E['responses'] & number]: { status: S; body: BodyOf<E['responses'][S]>; headers?: Record<string, string> }
}[keyof E['responses'] & number]

/** `reply(201, session)`: the status is checked against the endpoint, the body against that status's schema. */
export const reply = <const S extends number, B>(status: S, body: B, headers?: Record<string, string>) => ({
  status,
  body,
  ...(headers === undefined ? {} : { headers }),
})

export type Handler<E extends Endpoint> = (request: Request<E>) => Promise<Answer<E> | undefined>
export type Handle = <E extends Endpoint>(endpoint: E, handler: Handler<E>) => void

export type HandleOptions = { prefix: string; checkAnswers: boolean; authenticate: Authenticate }

const SLOW_BODY_MS = 2000

/** Registers endpoints on a router: parse the request, call the handler, send its answer. */
export function createHandle(
  router: Router,
  deps: Deps,
  { prefix, checkAnswers, authenticate }: HandleOptions,
): Handle {
  return (endpoint, handler) => {
    const path = routePath(endpoint.path, prefix)
    router.register(path, [endpoint.method], async (ctx) => {
      const caller = await authenticate(ctx, endpoint)
      checkText(ctx.query, 'The query')
      const key = endpoint.creates ? idempotencyKey(ctx) : undefined
      const params = endpoint.params && parse(endpoint.params, ctx.params, '')
      const query = endpoint.query && parse(endpoint.query, ctx.query, '')
      const begunAt = Date.now()
      const body = endpoint.body ? parse(endpoint.body, await bodyOf(ctx, endpoint), '') : await ignoreBody(ctx)
      // A body that takes its time must not keep a credential alive that has been revoked meanwhile.
      if (Date.now() - begunAt > SLOW_BODY_MS) await authenticate(ctx, endpoint)
      let isGuarded = false
      const once = <T>(create: (attempt: CreationAttempt) => Promise<T>): Promise<T> => {
        isGuarded = true
        if (key === undefined || caller === undefined) return create({})
        // A document's type decides how it is read.
        const operation = [
          endpoint.method,
          endpoint.path,
          encode(endpoint.params, params),
          endpoint.textTypes && ctx.request.type,
        ]
        return runOnce(deps, caller.actor, { key, request: [...operation, encode(endpoint.body, body)] }, create)
      }
      const request = { params, query, body, ...caller, once, ctx: ctx as unknown as Context }
      // The schemas that Request's types come from are the ones that were just applied.
      const answer = await handler(request as unknown as Request<typeof endpoint>)
      if (answer === undefined) return
      if (checkAnswers) checkAnswer(endpoint, answer as AnyAnswer, isGuarded)
      send(ctx, answer as AnyAnswer)
    })
  }
}

/** What a schema has parsed, as it is on the wire: the fingerprints of requests that are stored were made of that. */
const encode = (schema: z.ZodType | undefined, value: unknown): unknown =>
  schema === undefined ? value : z.encode(schema, value)

type AnyAnswer = { status: number; body: unknown; headers?: Record<string, string> }

function send(ctx: Pick<Context, 'status' | 'set' | 'body'>, { status, body, headers }: AnyAnswer): void {
  ctx.set(headers ?? {})
  ctx.body = body ?? null
  ctx.status = status
}

/** `/v1/agents/{agent_id}` is `/v1/agents/:agent_id` to the router; only /v1 moves with the prefix. */
const routePath = (path: string, prefix: string): string =>
  (path.startsWith('/v1/') ? prefix + path : path).replace(/\{(\w+)\}/g, ':$1')

/** Undefined when there is none. */
function idempotencyKey(ctx: Context): string | undefined {
  if (!('idempotency-key' in ctx.headers)) return undefined
  const key = ctx.get('Idempotency-Key')
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key
  throw new RequestError(400, 'Idempotency-Key: must be 1 to 255 ASCII characters')
}

async function bodyOf(ctx: Context, endpoint: Endpoint): Promise<unknown> {
  const limitBytes = endpoint.bodyLimitBytes ?? DEFAULT_BODY_BYTES
  if (endpoint.textTypes !== undefined) return readText(ctx, limitBytes, endpoint.textTypes)
  const body = await readJson(ctx, limitBytes)
  if (body !== undefined) return body
  if (endpoint.bodyOptional) return {}
  throw new RequestError(400, 'A JSON request body is needed')
}

/** Clients send `{}` where nothing is needed; it is read, so that its limits hold, and not looked at. */
async function ignoreBody(ctx: Context): Promise<undefined> {
  if (ctx.method !== 'GET') await readJson(ctx, DEFAULT_BODY_BYTES)
  return undefined
}

/** Throws RequestError 400 that names the fields; `where` is what the whole is called. */
export function parse<S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new RequestError(
    400,
    parsed.error.issues
      .slice(0, 5)
      .map((issue) => sentence(issue, where))
      .join('; '),
  )
}

function sentence(issue: z.core.$ZodIssue, where: string): string {
  const nested = issue.code === 'invalid_union' ? issue.errors.flat().at(0) : undefined
  const path = [...issue.path, ...(nested?.path ?? [])].join('.')
  const field = path === '' ? where || 'The request body' : path
  return `${field}: ${lowerFirst(nested?.message ?? issue.message)}`
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** In tests every answer is held against the contract. */
function checkAnswer(endpoint: Endpoint, { status, body }: AnyAnswer, isGuarded: boolean): void {
  const where = `${endpoint.method} ${endpoint.path} ${status}`
  if (!(status in endpoint.responses)) throw new Error(`${where}: not in the contract`)
  if (endpoint.creates && !isGuarded) throw new Error(`${where}: created something without regard to Idempotency-Key`)
  const schema = endpoint.responses[status as keyof Endpoint['responses']]
  if (!isSchema(schema)) return
  const parsed = schema.safeParse(JSON.parse(JSON.stringify(body)))
  if (!parsed.success) throw new Error(`${where} is not what the contract says: ${parsed.error.message}`)
}
