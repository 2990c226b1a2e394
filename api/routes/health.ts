import { describeError } from '../../contract/errors.ts'
import { healthEndpoints } from '../../contract/health.ts'
import type { Deps, Readiness } from '../../domain/deps.ts'
import { type Handle, reply } from '../http/handle.ts'

type HealthOptions = { version: string; readiness: Readiness }

export function healthRoutes(handle: Handle, { auth }: Deps, { version, readiness }: HealthOptions): void {
  handle(healthEndpoints.live, async () => reply(200, { status: 'ok', version, auth_mode: auth.mode }))
  handle(healthEndpoints.ready, async ({ ctx }) => {
    const parts = await readiness()
    const away = Object.entries(parts).filter(([, state]) => state !== 'ok')
    if (away.length === 0) return reply(200, { status: 'ready' as const, parts })
    ctx.status = 503
    ctx.body = describeError(503, `Not ready: ${away.map(([part, state]) => `${part} (${state})`).join(', ')}`)
    return undefined
  })
}
