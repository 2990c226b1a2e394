import ipaddr from 'ipaddr.js'
import type { Context } from 'koa'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Deps } from '../domain/deps.ts'
import { RequestError } from './errors.ts'

/** Throws 429 for an address that has asked too often within a minute. */
export type Limit = (ctx: Context) => Promise<void>

const DURATION_SECONDS = 60

/** For all processes together; each counts for itself while Redis is away. */
export function createLimit(
  { redis, redisPrefix }: Pick<Deps, 'redis' | 'redisPrefix'>,
  name: string,
  points: number,
): Limit {
  const insuranceLimiter = new RateLimiterMemory({ points, duration: DURATION_SECONDS })
  const limiter = new RateLimiterRedis({
    storeClient: redis,
    keyPrefix: `${redisPrefix}:limit:${name}`,
    points,
    duration: DURATION_SECONDS,
    insuranceLimiter,
    rejectIfRedisNotReady: true,
  })
  return async (ctx) => {
    try {
      await limiter.consume(addressOf(ctx.ip))
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error
      const seconds = `${Math.max(1, Math.ceil(error.msBeforeNext / 1000))}`
      throw new RequestError(429, `Too many attempts from this address; try again in ${seconds} s`, {
        'Retry-After': seconds,
        'RateLimit-Limit': `${points}`,
        'RateLimit-Remaining': '0',
        'RateLimit-Reset': seconds,
      })
    }
  }
}

/** Of IPv6 the network: one line has 2^64 addresses. */
function addressOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return ip
  const address = ipaddr.process(ip)
  return address.kind() === 'ipv4' ? address.toString() : address.toByteArray().slice(0, 8).join('.')
}
