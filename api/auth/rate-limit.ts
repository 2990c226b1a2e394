import type { Context } from 'koa'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Deps } from '../../domain/deps.ts'
import type { Actor } from '../../domain/kit/actor.ts'
import { RequestError } from '../http/errors.ts'
import { addressOf } from './origin.ts'

/** Throws 429 for an address or network that has sent too many requests within a minute. */
export type Limit = (ctx: Context) => Promise<void>

const DURATION_SECONDS = 60

/** Limit of a network, as a multiple of an address's limit. A caller with many addresses usually has adjacent ones. */
const NETWORK_FACTOR = 10

type LimitDeps = Pick<Deps, 'redis' | 'log'>

/**
 * Limits one address to `points` requests a minute, counted in Redis for all processes. While Redis is unavailable each
 * process counts for itself.
 */
export function createLimit(deps: LimitDeps, name: string, points: number): Limit {
  const ofAddress = createCounter(deps, { name, policy: 'address', points, what: ATTEMPTS })
  const network = { name: `${name}:network`, policy: 'network', points: points * NETWORK_FACTOR, what: ATTEMPTS }
  const ofNetwork = createCounter(deps, network)
  const warnOfProxy = createProxyWarning(deps.log)
  return async (ctx) => {
    warnOfProxy(ctx)
    const { address, network } = placeOf(ctx)
    await ofAddress(ctx, address)
    await ofNetwork(ctx, network)
  }
}

/** Requests that a caller may send within a minute. Undefined: no limit. */
export type CallerLimits = { perKey: number | undefined; perOrganization: number | undefined }

/** Throws 429 for an API key, or an organization, that has sent too many requests within a minute. */
export type LimitCaller = (ctx: Context, actor: Actor) => Promise<void>

/** Limits the requests of API keys and organizations. A limit that is not set counts nothing. */
export function createCallerLimit(deps: LimitDeps, { perKey, perOrganization }: CallerLimits): LimitCaller {
  const ofKey = perKey && createCounter(deps, { ...KEY, points: perKey })
  const ofOrganization = perOrganization && createCounter(deps, { ...ORGANIZATION, points: perOrganization })
  return async (ctx, { apiKeyId, organizationId }) => {
    // The key first, so that a key beyond its limit takes nothing from the others of its organization.
    if (ofKey && apiKeyId !== null) await ofKey(ctx, apiKeyId)
    if (ofOrganization) await ofOrganization(ctx, organizationId)
  }
}

const ATTEMPTS = 'Too many attempts from this address'
const KEY = { name: 'key', policy: 'api_key', what: 'Too many requests with this API key' }
const ORGANIZATION = { name: 'organization', policy: 'organization', what: 'Too many requests in this organization' }

type Policy = { name: string; policy: string; points: number /** What is refused, for people. */; what: string }

/** Counts a request, and tells its answer the limit and what is left of it, in the terms of the IETF's draft. */
type Counter = (ctx: Context, key: string) => Promise<void>

function createCounter({ redis }: LimitDeps, { name, policy, points, what }: Policy): Counter {
  const limiter = new RateLimiterRedis({
    storeClient: redis.client,
    keyPrefix: `${redis.prefix}:limit:${name}`,
    points,
    duration: DURATION_SECONDS,
    insuranceLimiter: new RateLimiterMemory({ points, duration: DURATION_SECONDS }),
    rejectIfRedisNotReady: true,
  })
  return async (ctx, key) => {
    const counted = await limiter.consume(key).catch((refused: unknown) => {
      if (refused instanceof RateLimiterRes) return refused
      throw refused
    })
    const seconds = Math.max(1, Math.ceil(counted.msBeforeNext / 1000))
    ctx.append('RateLimit-Policy', `"${policy}";q=${points};w=${DURATION_SECONDS}`)
    ctx.append('RateLimit', `"${policy}";r=${Math.max(0, counted.remainingPoints)};t=${seconds}`)
    if (counted.consumedPoints <= points) return
    throw new RequestError(429, `${what}; try again in ${seconds} s`, {
      'Retry-After': `${seconds}`,
    })
  }
}

/** Warns once when TRUSTED_PROXIES cannot be the number of proxies in front. */
function createProxyWarning(log: Deps['log']): (ctx: Context) => void {
  let hasWarned = false
  return (ctx) => {
    const forwarded = ctx.get('X-Forwarded-For')
    if (hasWarned || forwarded === '') return
    const { proxy: trustsProxies, maxIpsCount: trusted } = ctx.app
    const count = forwarded.split(',').length
    if (trustsProxies && count >= trusted) return
    hasWarned = true
    if (!trustsProxies)
      log.warn('requests come through a proxy, but TRUSTED_PROXIES is 0: all callers share the limits of one address')
    else
      log.warn(
        `requests come through ${count} of ${trusted} TRUSTED_PROXIES: callers may choose the address they count for`,
      )
  }
}

/**
 * Returns the address and network that a request counts for. An IPv6 subscriber has 2^64 addresses, so a /64 counts as
 * one address. Its network is the /48, an IPv4 address's network the /24.
 */
function placeOf(ctx: Context): { address: string; network: string } {
  const address = addressOf(ctx)
  const bytes = address.toByteArray()
  const part = (length: number) => `${address.kind()} ${bytes.slice(0, length).join('.')}`
  return address.kind() === 'ipv4' ? { address: part(4), network: part(3) } : { address: part(8), network: part(6) }
}
