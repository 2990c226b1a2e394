import { durableEndpoints } from '../../contract/durable.ts'
import type { Deps } from '../../domain/deps.ts'
import { createMonitor, type Monitor } from '../../domain/monitoring/monitor.ts'
import type { Handle } from '../handle.ts'
import type { SseEvent, SseStreams } from '../sse.ts'

export function durableRoutes(handle: Handle, deps: Deps, streams: SseStreams): void {
  const monitor = createMonitor(() => deps.readTemporalHealth())
  handle(durableEndpoints.stream, async ({ scope, credential, ctx }) => {
    await streams.serve(ctx, {
      organizationId: scope.organizationId,
      credential,
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
