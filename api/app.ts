import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import cors from '@koa/cors'
import Router from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import type { FaceName } from '../contract/faces.ts'
import { endpoints } from '../contract/index.ts'
import type { Deps, Readiness } from '../domain/deps.ts'
import { runOnce } from '../domain/kit/idempotency-keys.ts'
import { isLoopback } from '../lib/loopback.ts'
import { SERVICE_HEADER } from '../lib/outgoing/guard.ts'
import { createAuthenticate, isWrite } from './auth/authenticate.ts'
import { type CallerLimits, createCallerLimit } from './auth/rate-limit.ts'
import { addConsole } from './console/routes.ts'
import type { ConsoleOptions } from './console/site.ts'
import { addEmbed } from './faces/embed/routes.ts'
import { addFaces, useErrorForms } from './faces/faces.ts'
import { limitArrival } from './http/arrival.ts'
import { answerErrors, RequestError } from './http/errors.ts'
import { createHandle } from './http/handle.ts'
import { logRequests } from './http/log-requests.ts'
import { openapiDocument } from './http/openapi.ts'
import type { SseStreams } from './http/sse.ts'
import { traceRequests } from './http/trace-requests.ts'
import { addDocs } from './pages/docs.ts'
import { addJoinPage } from './pages/join-page.ts'
import { agentRoutes, agentVersionRoutes } from './routes/agents.ts'
import { auditRoutes } from './routes/audit.ts'
import { authRoutes } from './routes/auth.ts'
import { budgetRoutes } from './routes/budgets.ts'
import { capabilityRoutes } from './routes/capabilities.ts'
import { compactionRoutes } from './routes/compaction.ts'
import { databaseRoutes } from './routes/databases.ts'
import { durableRoutes } from './routes/durable.ts'
import { eventRoutes } from './routes/events.ts'
import { fileRoutes } from './routes/files.ts'
import { forkRoutes } from './routes/forks.ts'
import { healthRoutes } from './routes/health.ts'
import { imageRoutes } from './routes/images.ts'
import { invitationRoutes } from './routes/invitations.ts'
import { llmModelRoutes } from './routes/llm-models.ts'
import { llmProviderRoutes } from './routes/llm-providers.ts'
import { mcpServerRoutes } from './routes/mcp-servers.ts'
import { memberRoutes } from './routes/members.ts'
import { messageRoutes } from './routes/messages.ts'
import { organizationEventRoutes } from './routes/organization-events.ts'
import { organizationRoutes } from './routes/organizations.ts'
import { runRoutes } from './routes/runs.ts'
import { scheduleRoutes } from './routes/schedules.ts'
import { secretRoutes } from './routes/secrets.ts'
import { sessionRoutes } from './routes/sessions.ts'
import { skillRoutes } from './routes/skills.ts'
import { storageRoutes } from './routes/storage.ts'
import { taskQueueRoutes } from './routes/task-queues.ts'
import { turnRoutes } from './routes/turns.ts'
import { userRoutes } from './routes/users.ts'
import { webhookRoutes } from './routes/webhooks.ts'

export type AppOptions = {
  /** Address on which the service listens. */
  host: string
  version: string
  apiPrefix: string
  corsOrigins: string[]
  /** Number of trusted proxies in front of the service. */
  trustedProxies: number
  readiness: Readiness
  streams: SseStreams
  /** The console; undefined when it is off. */
  console: { temporalUi: ConsoleOptions['temporalUi'] } | undefined
  /** Faces that are served. */
  faces: readonly FaceName[]
  /** Adds the caller's organization to the line of a request in the log. */
  logsOrganization?: boolean
  callerLimits?: CallerLimits
  /** Checks every answer against the contract; for tests. */
  checkAnswers?: boolean
}

const NO_LIMITS: CallerLimits = { perKey: undefined, perOrganization: undefined }

export function createApp(deps: Deps, options: AppOptions): Koa {
  const router = new Router()
  const handle = createHandle(router, {
    prefix: options.apiPrefix,
    checkAnswers: options.checkAnswers ?? false,
    log: deps.log,
    authenticate: createAuthenticate(deps),
    limitCaller: createCallerLimit(deps, options.callerLimits ?? NO_LIMITS),
    ownerOf: deps.owners.ownerOf,
    runOnce: (actor, request, create) => runOnce(deps, actor, request, create),
  })
  healthRoutes(handle, deps, options)
  authRoutes(handle, deps)
  auditRoutes(handle, deps)
  organizationRoutes(handle, deps)
  memberRoutes(handle, deps)
  invitationRoutes(handle, deps)
  userRoutes(handle, deps)
  agentRoutes(handle, deps)
  agentVersionRoutes(handle, deps)
  sessionRoutes(handle, deps)
  forkRoutes(handle, deps)
  messageRoutes(handle, deps, options.streams)
  compactionRoutes(handle, deps, options.streams)
  eventRoutes(handle, deps, options.streams)
  organizationEventRoutes(handle, deps, options.streams)
  turnRoutes(handle, deps)
  runRoutes(handle, deps)
  llmProviderRoutes(handle, deps)
  llmModelRoutes(handle, deps)
  mcpServerRoutes(handle, deps)
  secretRoutes(handle, deps)
  imageRoutes(handle, deps)
  fileRoutes(handle, deps)
  storageRoutes(handle, deps)
  databaseRoutes(handle, deps)
  skillRoutes(handle, deps)
  capabilityRoutes(handle, deps)
  durableRoutes(handle, deps, options.streams)
  scheduleRoutes(handle, deps)
  budgetRoutes(handle, deps)
  webhookRoutes(handle, deps)
  taskQueueRoutes(handle, deps)
  addFaces(options.faces, handle, deps, options)
  addJoinPage(router, options.apiPrefix, options.console !== undefined)
  if (options.console) addConsole(router, { prefix: options.apiPrefix, ...options.console })
  if (options.faces.includes('embed')) addEmbed(router, options.apiPrefix)
  router.get('/', (ctx) => ctx.redirect(options.console ? 'console' : 'docs'))
  const isOpen = deps.auth.mode === 'none'
  addDocs(router, () => openapiDocument(endpoints, { version: options.version, prefix: options.apiPrefix, isOpen }))

  // A caller can put anything into X-Forwarded-For; only the entries added by our own proxies can be trusted.
  const app = new Koa({ proxy: options.trustedProxies > 0, maxIpsCount: options.trustedProxies })
  app.use(limitArrival())
  app.use(commonHeaders)
  app.use(logRequests(deps.log, { withOrganization: options.logsOrganization ?? false }))
  app.use(traceRequests(deps.tracing))
  app.use(answerErrors(deps))
  app.use(refuseOwnRequests(deps.outgoing))
  app.use(checkTarget)
  if (options.corsOrigins.length > 0) app.use(allowOrigins(options.corsOrigins))
  if (deps.auth.mode === 'none') {
    if (isLoopback(options.host)) app.use(refuseForeignHosts(options.corsOrigins))
    app.use(refuseForeignWrites(options.corsOrigins))
  }
  app.use(ignoreApiPrefix(options.apiPrefix))
  app.use(useErrorForms(options.faces, deps, options.apiPrefix))
  app.use(refuseShadowed(literalPaths(router)))
  app.use(router.routes())
  app.use(unknownRoute(router, options.apiPrefix))
  // Koa itself only reports clients that disconnect in the middle of an answer.
  app.on('error', (error: Error) => deps.log.debug({ err: error.message }, 'answer broken off'))
  return app
}

const commonHeaders: Middleware = (ctx, next) => {
  const given = ctx.get('X-Request-Id')
  ctx.state.requestId = /^[\x21-\x7e]{1,128}$/.test(given) ? given : randomUUID()
  ctx.set('X-Request-Id', ctx.state.requestId)
  ctx.set('X-Content-Type-Options', 'nosniff')
  return next()
}

/**
 * Refuses requests that a tenant had this service send to itself with 403, by whatever address they arrive. The guard of
 * outgoing requests knows only the addresses of its own machine.
 */
const refuseOwnRequests =
  ({ serviceId }: Deps['outgoing']): Middleware =>
  (ctx, next) => {
    if (serviceId === undefined || ctx.get(SERVICE_HEADER) !== serviceId) return next()
    throw new RequestError(403, 'Tools cannot call the service itself')
  }

/**
 * Refuses with 400 requests that Node lets through although they name no resource: without Host, or with a broken
 * target.
 */
const checkTarget: Middleware = (ctx, next) => {
  if (ctx.req.httpVersion === '1.1' && ctx.req.headers.host === undefined) {
    throw new RequestError(400, 'The Host header is missing')
  }
  const target = ctx.req.url ?? ''
  if (target.startsWith('/') || target === '*') return next()
  const url = URL.parse(target)
  if (url === null) throw new RequestError(400, 'The target of the request is neither a path nor a valid URL')
  ctx.url = url.pathname + url.search
  return next()
}

/**
 * Strips /api from the path, so that the documented default of AUTH_BASE_URL works without a proxy in front. Paths
 * under the prefix are left alone, because the prefix may begin with /api itself.
 */
const ignoreApiPrefix =
  (apiPrefix: string): Middleware =>
  (ctx, next) => {
    const isOurs = apiPrefix !== '' && ctx.path.startsWith(`${apiPrefix}/v1/`)
    if (!isOurs && ctx.path.startsWith('/api/')) ctx.path = ctx.path.slice('/api'.length)
    return next()
  }

const EXPOSED_HEADERS = [
  'X-Request-Id',
  'X-Session-Id',
  'Retry-After',
  'RateLimit-Policy',
  'RateLimit',
  'Content-Disposition',
  'ETag',
  'Content-Range',
  'Accept-Ranges',
]

/** Time for which a browser may keep the answer to a preflight request. */
const PREFLIGHT_SECONDS = 600

const allowOrigins = (origins: string[]): Middleware =>
  cors({
    origin: (ctx) => (origins.includes(ctx.get('Origin')) ? ctx.get('Origin') : ''),
    credentials: true,
    exposeHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_SECONDS,
  })

/**
 * Refuses requests for a name that is not this machine's with 403. A page of another site can have its own name lead
 * here, and is then of the same origin for its browser (DNS rebinding). An address or a name of this machine cannot.
 */
const refuseForeignHosts =
  (allowedOrigins: string[]): Middleware =>
  (ctx, next) => {
    const name = URL.parse(`http://${ctx.get('Host')}`)?.hostname ?? ''
    const isOurs = isLoopback(name) || name.endsWith('.localhost') || isIP(name.replace(/[[\]]/g, '')) !== 0
    const isAllowed = allowedOrigins.some((origin) => URL.parse(origin)?.hostname === name)
    if (isOurs || isAllowed) return next()
    throw new RequestError(403, 'HOST is not set, so only requests to localhost are accepted')
  }

/**
 * Refuses changes that a browser sends for a page of another site with 403. Without authentication any page that a
 * user visits could otherwise write to the service on their machine.
 */
const refuseForeignWrites =
  (allowedOrigins: string[]): Middleware =>
  (ctx, next) => {
    const origin = ctx.get('Origin')
    // Any page can have the origin null.
    const isAllowed = origin !== 'null' && allowedOrigins.includes(origin)
    if (!isWrite(ctx) || isAllowed || !isForeign(ctx)) return next()
    throw new RequestError(403, 'Pages of other sites may write only if CORS_ALLOWED_ORIGINS lists their origin')
  }

function isForeign(ctx: Context): boolean {
  const site = ctx.get('Sec-Fetch-Site')
  if (site !== '') return site === 'cross-site'
  const origin = ctx.get('Origin')
  return origin !== '' && URL.parse(origin)?.hostname !== ctx.hostname
}

/** Returns the methods of the paths that have no parameters. */
function literalPaths({ stack }: Router): Map<string, Set<string>> {
  const paths = new Map<string, Set<string>>()
  for (const { path, methods } of stack) {
    if (typeof path !== 'string' || /[:*]/.test(path)) continue
    paths.set(path, new Set([...(paths.get(path) ?? []), ...methods]))
  }
  return paths
}

/** Refuses a method that only a path with a parameter in this place has: no id can equal the literal. */
const refuseShadowed =
  (literals: Map<string, Set<string>>): Middleware =>
  (ctx, next) => {
    const methods = literals.get(ctx.path)
    if (methods === undefined || methods.has(ctx.method)) return next()
    return answerOtherMethod(ctx, methods)
  }

/**
 * Answers requests that no route takes. A path that exists for other methods answers OPTIONS with these and anything
 * else with 405; other paths answer 404.
 */
const unknownRoute =
  (router: Router, apiPrefix: string): Middleware =>
  (ctx) => {
    const methods = new Set(router.match(ctx.path, ctx.method).path.flatMap((layer) => layer.methods))
    if (methods.size === 0) {
      const base = `${apiPrefix}/v1`
      const hint = ctx.path.startsWith(`${base}/`) ? '' : `; the routes begin with ${base}`
      throw new RequestError(404, `There is no route ${ctx.method} ${ctx.path.slice(0, 200)}${hint}`)
    }
    answerOtherMethod(ctx, methods)
  }

function answerOtherMethod(ctx: Context, methods: Set<string>): void {
  const allow = [...methods, 'OPTIONS'].join(', ')
  if (ctx.method !== 'OPTIONS') {
    throw new RequestError(405, `${ctx.method} is not allowed here; allowed: ${allow}`, { Allow: allow })
  }
  ctx.status = 204
  ctx.set('Allow', allow)
}
