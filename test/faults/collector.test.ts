import { sleep } from '../../lib/sleep.ts'
import { startCollector } from '../support/collector.ts'
import { createScriptedSession, type Json, waitFor, waitUntilIdle } from '../support/http.ts'
import { startService } from '../support/service.ts'
import { post } from '../support/turns.ts'

/** Time that OpenTelemetry's timers take to end after a collector was given up. */
const TIMERS_MS = 5500
afterAll(() => sleep(TIMERS_MS), 10_000)

const TURNS = 5
/** Time that the exporter waits for the collector. A stop waits for 2 s. */
const SEND_TIMEOUT_MS = 5000

it.each([
  ['hangs', { hangs: true }],
  ['is away', undefined],
])('turns do not wait for a collector that %s, a stop waits for 2 s, and the log says so', async (_title, options) => {
  const collector = await startCollector(options)
  if (options === undefined) await collector.stop()
  const service = await startService({ environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } })
  const lines: Json[] = []
  const write = service.logCheck.write.bind(service.logCheck)
  service.logCheck.write = (line) => {
    lines.push(JSON.parse(line))
    write(line)
  }
  const lost = () => lines.filter(({ msg }) => msg === 'traces not sent')
  const began = performance.now()
  for (let turn = 0; turn < TURNS; turn++) {
    const id = await createScriptedSession(service.url, [{ text: 'Bonjour' }])
    await post(service.url, id)
    await waitUntilIdle(service.url, id)
  }
  // Less than if each turn waited for a timeout of the exporter.
  expect(performance.now() - began).toBeLessThan(TURNS * SEND_TIMEOUT_MS)
  await waitFor(async () => lost().length > 0, 'the line')
  // A span that is still to be sent.
  await createScriptedSession(service.url, [{ text: 'Bonjour' }])
  const { tracing } = service.platform.deps
  const { close } = tracing as typeof tracing & { close(): Promise<void> }
  const before = performance.now()
  await close()
  expect(performance.now() - before).toBeLessThan(SEND_TIMEOUT_MS)
  await service.stop()
  expect(lost().length).toBeLessThan(3)
  if (options === undefined) return
  expect(collector.requests[0]).toMatchObject({ 'content-type': 'application/x-protobuf' })
  await collector.stop()
})
