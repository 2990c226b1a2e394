import { durableEndpoints } from '../../contract/durable.ts'
import type { Deps } from '../../domain/deps.ts'
import { createMonitor, type Monitor } from '../../domain/upkeep/health/monitor.ts'
import { readHealth } from '../../domain/upkeep/health/read-health.ts'
import type { Handle } from '../http/handle.ts'
import type { SseEvent, SseStreams } from '../http/sse.ts'

export function durableRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  const monitor = createMonitor(() => readHealth(deps))
  handle(durableEndpoints.stream, async ({ actor, credential, ctx }) => {
    await streams.serve(ctx, {
      organizationId: actor.organizationId,
      credential: credential && { ...credential, needsAdmin: true },
      kind: 'monitoring',
      sessionId: undefined,
      open: async (signal) => snapshots(monitor, signal),
    })
    return undefined
  })
}

async function* snapshots(monitor: Monitor, signal: AbortSignal): AsyncGenerator<SseEvent[], string> {
  for await (const snapshot of monitor.follow(signal)) yield [{ type: 'snapshot', line: JSON.stringify(snapshot) }]
  return 'aborted'
}
