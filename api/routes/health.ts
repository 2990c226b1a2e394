import { describeError } from '../../contract/errors.ts'
import { healthEndpoints } from '../../contract/health.ts'
import type { Deps, Readiness } from '../../domain/deps.ts'
import { judgeReadiness } from '../../domain/upkeep/health/readiness.ts'
import { type Handle, reply } from '../http/handle.ts'

type HealthOptions = { version: string; readiness: Readiness }

export function healthRoutes(handle: Handle, { auth }: Deps, { version, readiness }: HealthOptions): void {
  handle(healthEndpoints.live, async () => reply(200, { status: 'ok', version, auth_mode: auth.mode }))
  handle(healthEndpoints.ready, async ({ ctx }) => {
    const parts = await readiness()
    const judged = judgeReadiness(parts)
    if ('status' in judged) return reply(200, { ...judged, parts })
    ctx.status = 503
    ctx.body = describeError(503, judged.sentence)
    return undefined
  })
  handle(healthEndpoints.started, async () => reply(200, { status: 'started' as const }))
}
