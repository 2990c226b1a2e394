import type Router from '@koa/router'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import { z } from 'zod'
import {
  type Endpoint,
  type FileBody,
  isFile,
  type MultipartBody,
  type RawBody,
  type RawUpload,
} from '../../contract/kit/endpoint.ts'
import type { Caller, Credential } from '../../domain/identity/auth/caller.ts'
import type { Actor } from '../../domain/kit/actor.ts'
import type { CreationAttempt, KeyedRequest } from '../../domain/kit/idempotency-keys.ts'
import { toId } from '../../domain/kit/ids.ts'
import type { Authenticate } from '../auth/authenticate.ts'
import type { LimitCaller } from '../auth/rate-limit.ts'
import { type AnyAnswer, checksOf, createAnswerChecks } from './answer-checks.ts'
import { DEFAULT_BODY_BYTES } from './body.ts'
import { BODY_MEMORY_BYTES, type BodyMemory, createBodyMemory } from './body-memory.ts'
import { type ServedFile, sendFile } from './file.ts'
import type { Upload } from './multipart.ts'
import { createParseQueue, type ParseQueue } from './parse-queue.ts'
import { type Input, readRequest } from './read-request.ts'

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined
type ParsedBody<E extends Endpoint> = E['multipart'] extends MultipartBody
  ? Upload<Parsed<E['multipart']['fields']>>
  : E['raw'] extends RawUpload
    ? Upload | (E['body'] extends z.ZodType ? Parsed<E['body']> : never)
    : Parsed<E['body']>

/** Request as a handler gets it, parsed with the endpoint's schemas. */
export type Request<E extends Endpoint> = {
  params: Parsed<E['params']>
  query: Parsed<E['query']>
  body: ParsedBody<E>
  /** Authenticated caller; undefined for `public` and `login` endpoints. */
  actor: E['access'] extends 'public' | 'login' ? undefined : Actor
  /** Credential that identified the caller; undefined where nobody signs in. */
  credential: Credential | undefined
  ctx: Context
  once: Once
}

/** Wraps a creation. With an Idempotency-Key it runs once, and every repetition gets the first answer. */
type Once = <T>(create: (attempt: CreationAttempt) => Promise<T>) => Promise<T>

type BodyOf<B> = B extends z.ZodType
  ? z.input<B>
  : B extends FileBody
    ? ServedFile
    : B extends RawBody
      ? string
      : undefined
/** Statuses that a handler may answer with; 206 and 304 are derived from 200. */
type StatusOf<E extends Endpoint> = Exclude<keyof E['responses'] & number, 206 | 304>
/** Answer of an endpoint, in one of its statuses. A handler that streams writes to ctx itself and returns undefined. */
export type Answer<E extends Endpoint> = {
  [S in StatusOf<E>]: { status: S; body: BodyOf<E['responses'][S]>; headers?: Record<string, string> }
}[StatusOf<E>]

/**
 * Makes an answer, as in `reply(201, session)`. The status is checked against the endpoint, the body against that
 * status's schema.
 */
export const reply = <const S extends number, B>(status: S, body: B, headers?: Record<string, string>) => ({
  status,
  body,
  ...(headers === undefined ? {} : { headers }),
})

/** Headers of an answer with a secret, which must not be cached. */
export const NOT_STORED = { 'Cache-Control': 'no-store' }

export type Handler<E extends Endpoint> = (request: Request<E>) => Promise<Answer<E> | undefined>
/** Throws for a request that must not be handled, before its body is read. */
export type Gate = (ctx: Context) => Promise<void>
export type Handle = <E extends Endpoint>(endpoint: E, handler: Handler<E>, gate?: Gate) => void

const SLOW_BODY_MS = 2000

/** Runs `create` once per Idempotency-Key of an actor. */
export type RunOnce = <T>(
  actor: Actor,
  request: KeyedRequest,
  create: (attempt: CreationAttempt) => Promise<T>,
) => Promise<T>

export type HandleOptions = {
  prefix: string
  /** Checks every answer against the contract; for tests. */
  checkAnswers: boolean
  log: Logger
  authenticate: Authenticate
  limitCaller: LimitCaller
  /** Returns the owner of an organization. An owner's organizations share the memory of bodies. */
  ownerOf(organizationId: string): Promise<string>
  runOnce: RunOnce
  /** Maximum number of bytes of bodies in memory at once. Default: 272 MiB. */
  bodyMemoryBytes?: number
}

/** Returns a function that registers endpoints on the router; `serve` handles their requests. */
export function createHandle(router: Router, options: HandleOptions): Handle {
  const bodyMemory = createBodyMemory(options.bodyMemoryBytes ?? BODY_MEMORY_BYTES)
  const parseQueue = createParseQueue()
  return (endpoint, handler, gate) => {
    const route = { ...options, bodyMemory, parseQueue, endpoint, gate, handler: handler as unknown as AnyHandler }
    const path = routePath(endpoint.path, options.prefix)
    checkOrder(router, endpoint, path)
    const serveRoute = options.checkAnswers ? serveChecked : serve
    router.register(path, [endpoint.method], (ctx) => serveRoute(route, ctx as unknown as Context))
  }
}

/**
 * Converts a path to the router's syntax: `/v1/agents/{agent_id}` to `/v1/agents/:agent_id`, `/{path*}` to `{/*path}`,
 * which may be empty. The prefix applies to /v1 only.
 */
const routePath = (path: string, prefix: string): string =>
  (path.startsWith('/v1/') ? prefix + path : path).replace(/\{(\w+)\}/g, ':$1').replace(/\/\{(\w+)\*\}/, '{/*$1}')

/**
 * Throws when an earlier route takes this route's requests. The router uses the first match, and a path of several
 * segments matches nearly everything below it.
 */
function checkOrder(router: Router, { method, path }: Endpoint, route: string): void {
  const taker = router.stack.find(
    (layer) => layer.methods.includes(method) && /\*\w+\}$/.test(`${layer.path}`) && layer.match(route),
  )
  if (taker !== undefined) throw new Error(`${path}: is taken by ${taker.path}, register it before`)
}

/** Handler without the types of its endpoint. The schemas that those types come from are applied at run time. */
type AnyHandler = (request: Record<string, unknown>) => Promise<AnyAnswer | undefined>
type Route = HandleOptions & {
  endpoint: Endpoint
  handler: AnyHandler
  gate: Gate | undefined
  bodyMemory: BodyMemory
  parseQueue: ParseQueue
}

/** Handles a request in steps. Each uses the results of the steps before it, or throws the error to answer with. */
async function serve(route: Route, ctx: Context): Promise<void> {
  const caller = await authenticate(route, ctx)
  if (caller !== undefined) await route.limitCaller(ctx, caller.actor)
  await route.gate?.(ctx)
  const recheck = recheckSlowBody(route, ctx)
  ctx.state.organization = caller && toId('org', caller.actor.organizationId)
  const owner = caller && (await route.ownerOf(caller.actor.organizationId))
  const hold = route.bodyMemory.hold(owner)
  const turn = route.parseQueue(owner)
  try {
    const input = await readRequest(ctx, route.endpoint, { hold, turn, recheck }).finally(() => turn.end())
    if (!mayBeLarge(route.endpoint)) hold.release()
    await recheck()
    const answer = await runHandler(route, ctx, caller, input)
    checkAnswer(ctx, answer)
    await send(route, ctx, answer)
  } finally {
    hold.release()
  }
}

/**
 * Whether bodies of the endpoint count until they are handled, and not only while they are read. Others do not: they are
 * small, and a handler may wait for minutes.
 */
const mayBeLarge = ({ bodyLimitBytes = 0, multipart, raw }: Endpoint): boolean =>
  bodyLimitBytes > DEFAULT_BODY_BYTES || multipart?.file.inMemory === true || raw?.inMemory === true

/** Serves a request in tests, where errors must be declared by the endpoint, too. */
async function serveChecked(route: Route, ctx: Context): Promise<void> {
  const checks = createAnswerChecks(route.endpoint)
  ctx.state.answerChecks = checks
  await serve(route, ctx).catch((error) => {
    // Nobody gets the answer to a connection that has closed.
    throw ctx.res.closed ? error : checks.thrown(error)
  })
}

const authenticate = (route: Route, ctx: Context) => route.authenticate(ctx, route.endpoint)

/** Returns a check that authenticates again after a slow body, in case the credential has been revoked meanwhile. */
function recheckSlowBody(route: Route, ctx: Context): () => Promise<void> {
  const begunAt = performance.now()
  return async () => {
    if (performance.now() - begunAt > SLOW_BODY_MS) await authenticate(route, ctx)
  }
}

/** Calls the handler. A creation that it wraps in `once` runs once per Idempotency-Key. */
async function runHandler(route: Route, ctx: Context, caller: Caller | undefined, input: Input) {
  let isGuarded = false
  const once: Once = (create) => {
    isGuarded = true
    return runKeyed(route, ctx, caller, input, create)
  }
  const { params, query, body, upload } = input
  try {
    const answer = await route.handler({ params, query, body: upload ?? body, ...caller, once, ctx })
    if (!isGuarded) checksOf(ctx)?.unguarded()
    return answer
  } finally {
    upload?.discard()
  }
}

function runKeyed<T>(
  { endpoint, runOnce }: Route,
  ctx: Context,
  caller: Caller | undefined,
  { idempotencyKey: key, params, body, upload }: Input,
  create: (attempt: CreationAttempt) => Promise<T>,
): Promise<T> {
  if (key === undefined || caller === undefined) return create({})
  // The content type decides how a document is parsed, so it is part of the operation.
  const operation = [
    endpoint.method,
    endpoint.path,
    encode(endpoint.params, params),
    endpoint.textTypes && ctx.request.type,
  ]
  const request = [...operation, upload === undefined ? encode(endpoint.body, body) : upload.fingerprint()]
  return runOnce(caller.actor, { key, request }, create)
}

/** Encodes a parsed value back to its form on the wire, which the stored fingerprints of requests are made from. */
const encode = (schema: z.ZodType | undefined, value: unknown): unknown =>
  schema === undefined ? value : z.encode(schema, value)

/** Checks the answer against the contract, in tests only. Streamed items are checked as they are written. */
function checkAnswer(ctx: Context, answer: AnyAnswer | undefined): void {
  const checks = checksOf(ctx)
  if (answer === undefined) checks?.ownAnswer(ctx)
  else checks?.answer(answer)
}

async function send({ endpoint, log }: Route, ctx: Context, answer: AnyAnswer | undefined): Promise<void> {
  if (answer === undefined) return
  const { status, body, headers } = answer
  if (isFile(endpoint.responses[status as 200])) {
    // The handler's type guarantees that the body is a file.
    return sendFile(ctx, log, body as ServedFile, { headers })
  }
  ctx.set(headers ?? {})
  ctx.body = body ?? null
  ctx.status = status
}
