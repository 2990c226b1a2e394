import type Router from '@koa/router'
import type { Context } from 'koa'
import { z } from 'zod'
import { type Endpoint, isSchema, type RawBody } from '../../contract/endpoint.ts'
import type { Actor } from '../../domain/actor.ts'
import type { Caller, Credential } from '../../domain/auth/caller.ts'
import type { Deps } from '../../domain/deps.ts'
import { type CreationAttempt, runOnce } from '../../domain/idempotency-keys.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import { type Input, readRequest } from './read-request.ts'

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
  once: Once
}

/** Wraps what a request creates: with an Idempotency-Key it is created once, and its answer is the first one. */
type Once = <T>(create: (attempt: CreationAttempt) => Promise<T>) => Promise<T>

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

const SLOW_BODY_MS = 2000

export type HandleOptions = { prefix: string; checkAnswers: boolean; authenticate: Authenticate }

/** Registers endpoints on a router: `serve` is what happens to a request. */
export function createHandle(router: Router, deps: Deps, options: HandleOptions): Handle {
  return (endpoint, handler) => {
    const route = { ...options, endpoint, deps, handler: handler as unknown as AnyHandler }
    const path = routePath(endpoint.path, options.prefix)
    router.register(path, [endpoint.method], (ctx) => serve(route, ctx as unknown as Context))
  }
}

/** `/v1/agents/{agent_id}` is `/v1/agents/:agent_id` to the router; only /v1 moves with the prefix. */
const routePath = (path: string, prefix: string): string =>
  (path.startsWith('/v1/') ? prefix + path : path).replace(/\{(\w+)\}/g, ':$1')

type AnyAnswer = { status: number; body: unknown; headers?: Record<string, string> }
/** A handler without the types of its endpoint, whose schemas give it what it expects. */
type AnyHandler = (request: Record<string, unknown>) => Promise<AnyAnswer | undefined>
type Route = HandleOptions & { endpoint: Endpoint; deps: Deps; handler: AnyHandler }

/** A request's way, in steps: each takes what those before it made, or throws what the caller is told. */
async function serve(route: Route, ctx: Context): Promise<void> {
  const caller = await route.authenticate(ctx, route.endpoint)
  const input = await readRequest(ctx, route.endpoint)
  await recheckSlowBody(route, ctx, input)
  const creation = guardCreation(route, ctx, caller, input)
  const { params, query, body } = input
  const answer = await route.handler({ params, query, body, ...caller, once: creation.once, ctx })
  if (answer === undefined) return
  if (route.checkAnswers) checkAnswer(route.endpoint, answer, creation.isGuarded())
  send(ctx, answer)
}

/** A body that takes its time must not keep a credential alive that has been revoked meanwhile. */
async function recheckSlowBody({ authenticate, endpoint }: Route, ctx: Context, { bodyMs }: Input): Promise<void> {
  if (bodyMs > SLOW_BODY_MS) await authenticate(ctx, endpoint)
}

/** `isGuarded` says whether the handler has used `once`. */
function guardCreation({ deps, endpoint }: Route, ctx: Context, caller: Caller | undefined, input: Input) {
  const { idempotencyKey: key, params, body } = input
  let isGuarded = false
  const once: Once = (create) => {
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
  return { once, isGuarded: () => isGuarded }
}

/** What a schema has parsed, as it is on the wire: the fingerprints of requests that are stored were made of that. */
const encode = (schema: z.ZodType | undefined, value: unknown): unknown =>
  schema === undefined ? value : z.encode(schema, value)

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

function send(ctx: Context, { status, body, headers }: AnyAnswer): void {
  ctx.set(headers ?? {})
  ctx.body = body ?? null
  ctx.status = status
}
