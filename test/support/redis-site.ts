import { Redis } from 'ioredis'
import { privateRedis } from './private-services.ts'
import { killProcesses } from './process.ts'
import { startService, type TestOptions, type TestService } from './service.ts'

/** Service with its own Redis, which tests can stop. */
export type RedisSite = {
  service: TestService
  stopRedis(): Promise<void>
  /** Kills Redis and removes its data. */
  loseRedis(): Promise<void>
  /** Starts Redis again at the same address. */
  startRedis(): Promise<void>
  askRedis(work: (admin: Redis) => Promise<unknown>): Promise<void>
  /** Stops everything, including processes started for the service. */
  close(): Promise<void>
}

export async function startRedisSite(options: TestOptions = {}): Promise<RedisSite> {
  const place = privateRedis()
  let redis = await place.start()
  const service = await startService({ ...options, environment: { ...options.environment, REDIS_URL: redis.url } })
  return {
    service,
    stopRedis: () => redis.stop(),
    loseRedis: async () => {
      await redis.kill()
      await place.remove()
    },
    startRedis: async () => {
      redis = await place.start()
    },
    askRedis: async (work) => {
      const admin = new Redis(redis.url)
      await work(admin)
      admin.disconnect()
    },
    close: async () => {
      await killProcesses()
      await service.stop()
      await redis.stop()
      await place.remove()
    },
  }
}
