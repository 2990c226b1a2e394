import { callerLimits, consoleOptions } from '../platform/config.ts'
import { version } from '../platform/version.ts'
import { type Role, run } from '../platform/wiring/run.ts'
import { startApi } from './server.ts'

export const apiRole: Role = async ({ deps, readiness, metrics }, config, log) => {
  const api = await startApi(deps, {
    host: config.HOST,
    port: config.PORT,
    version,
    apiPrefix: config.API_PREFIX,
    corsOrigins: config.CORS_ALLOWED_ORIGINS,
    trustedProxies: config.TRUSTED_PROXIES,
    readiness,
    logsOrganization: config.LOG_ORGANIZATION,
    callerLimits: callerLimits(config),
    console: consoleOptions(config),
    faces: config.FACES,
    sse: {
      cycleMs: config.SSE_REALTIME_CYCLE_SECS * 1000,
      monitoringCycleMs: config.SSE_MONITORING_CYCLE_SECS * 1000,
      heartbeatMs: config.SSE_HEARTBEAT_INTERVAL_SECS * 1000,
      maxStreamsPerOrganization: config.SSE_MAX_STREAMS_PER_ORGANIZATION,
    },
  })
  metrics?.watch('streams', api.openStreams)
  log.info({ port: api.port }, 'API listens')
  return { stop: api.close }
}

if (import.meta.main) await run('api', [apiRole])
