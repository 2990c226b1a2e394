import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { freePorts } from '../../dev/services/index.ts'
import { startOpsServer } from '../../platform/wiring/ops-server.ts'
import { createReadiness } from '../../platform/wiring/readiness.ts'
import { createScriptedSession, waitFor, waitUntilIdle } from '../support/http.ts'
import { killProcesses, runToEnd, startApiProcess } from '../support/process.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { post } from '../support/turns.ts'

const TURN = [{ tool_calls: [{ id: 'a', name: 'add', arguments: { a: 1, b: 2 } }] }, { text: 'three' }]

let service: TestService
let text: string
let port = 0
beforeAll(async () => {
  service = await startService({ worker: false })
  ;[port = 0] = await freePorts(1)
  const process = await startApiProcess(service, 'main.ts', { METRICS_PORT: `${port}`, METRICS_HOST: '127.0.0.1' })
  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)
  expect(await (await get('/health/started')).text()).toBe('started')
  expect((await get('/health')).status).toBe(200)
  expect(await (await get('/health/ready')).json()).toMatchObject({ status: 'ready', parts: { worker: 'ok' } })
  expect((await get('/nothing')).status).toBe(404)
  const id = await createScriptedSession(process.url, TURN, { capabilities: [{ ref: 'test_math' }] })
  const stream = await openStream(process.url, `/v1/sessions/${id}/sse`)
  await post(process.url, id)
  await waitUntilIdle(process.url, id)
  text = await waitFor(async () => {
    const metrics = await (await get('/metrics')).text()
    return metrics.includes('temporal_worker_task_slots_available{') && metrics
  }, "the metrics of Temporal's library")
  stream.close()
})
afterAll(async () => {
  await killProcesses()
  await service.stop()
})

/** Names of the metrics in a text of Prometheus, or in an expression. */
const namesOf = (expression: string): string[] => [
  ...new Set(expression.match(/\b(agent_sessions|nodejs|process|temporal)_[a-z0-9_]+/g)),
]
const exists = (name: string) => new RegExp(`^${name}(\\{| )`, 'm').test(text)

it('count a turn with a tool', () => {
  const value = (sample: string) =>
    Number(
      text
        .split('\n')
        .find((line) => line.startsWith(sample))
        ?.split(' ')
        .at(-1),
    )
  expect(value('agent_sessions_turns_total{end="completed"')).toBe(1)
  expect(value('agent_sessions_turn_seconds_count{end="completed"}')).toBe(1)
  expect(value('agent_sessions_turn_queue_seconds_count')).toBe(1)
  expect(value('agent_sessions_model_calls_total{provider="llmsim",outcome="success"}')).toBe(2)
  expect(value('agent_sessions_first_token_seconds_count{provider="llmsim"}')).toBe(2)
  expect(value('agent_sessions_attempts_total{reason="first"}')).toBe(2)
  expect(value('agent_sessions_tool_calls_total{tool="add",outcome="success"}')).toBe(1)
  expect(value('agent_sessions_attempts_total{reason="taken_over"}')).toBe(0)
  expect(value('agent_sessions_turns_total{end="failed",code="internal_error"}')).toBe(0)
  expect(value('agent_sessions_sweep_found_total{sweep="comparing turns with Temporal"}')).toBe(0)
  expect(value('agent_sessions_streams')).toBe(1)
  // The stream gets what is recorded after its start. The session's first event may be older.
  expect(value('agent_sessions_events_sent_total{how="live"}')).toBeGreaterThan(10)
  expect(value('agent_sessions_delivery_seconds_count')).toBeGreaterThan(1)
  expect(value('agent_sessions_delivery_seconds_sum')).toBeLessThan(5)
  expect(value('agent_sessions_postgres_connections')).toBeGreaterThan(0)
})

it('say nothing about whose it was', () => {
  const labels = [...text.matchAll(/\w+="([^"]*)"/g)].map(([, value = '']) => value)
  expect(labels.length).toBeGreaterThan(100)
  expect(labels.filter((value) => value.includes('/'))).toContainEqual(expect.stringMatching(/\/process$/))
  expect(labels.filter((value) => /\/(?!process$)/.test(value))).toEqual([])
  const ids = labels.filter((value) => /[0-9a-f]{16}|(session|agent|org|turn)_[0-9a-f]/.test(value))
  expect(ids).toEqual([])
})

it('have every metric that the dashboard and the alerts name', async () => {
  const dashboard = JSON.parse(await readFile('deploy/monitoring/dashboard.json', 'utf8'))
  const alerts = parse(await readFile('deploy/monitoring/alerts.yaml', 'utf8'))
  const expressions: string[] = [
    ...dashboard.panels.flatMap(({ targets }: { targets: { expr: string }[] }) => targets.map(({ expr }) => expr)),
    ...alerts.groups[0].rules.map(({ expr }: { expr: string }) => expr),
  ]
  expect(alerts.groups[0].rules).toHaveLength(10)
  const rule = {
    alert: expect.stringMatching(/^[A-Z][A-Za-z]+$/),
    expr: expect.any(String),
    labels: { severity: expect.stringMatching(/^(page|ticket)$/) },
    annotations: { summary: expect.stringMatching(/\.$/) },
  }
  for (const { for: _, ...given } of alerts.groups[0].rules) expect(given).toEqual(rule)
  const guide = await readFile('docs/operations.md', 'utf8')
  for (const { alert } of alerts.groups[0].rules) expect(guide).toContain(`| \`${alert}\` `)
  expect(expressions.length).toBeGreaterThan(30)
  // Counters with labels have no sample before something happens.
  const declared = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
  const missing = expressions
    .flatMap(namesOf)
    .filter((name) => !exists(name) && !declared.has(name) && !declared.has(name.replace(/_bucket$/, '')))
  expect(missing).toEqual([])
})

it('need a port that is free', async () => {
  const { environment } = service
  const taken = { ...environment, METRICS_PORT: `${port}`, METRICS_HOST: '127.0.0.1' }
  const { code, output } = await runToEnd('worker/main.ts', taken)
  expect(code).toBe(1)
  expect(output).toContain(
    `The service cannot start with this environment:\nMETRICS_PORT: port ${port} of 127.0.0.1 is taken\n`,
  )
})

it('come with a readiness that ends when the process stops', async () => {
  const { deps, temporal } = service.platform
  const stopping = AbortSignal.abort()
  const server = await startOpsServer({
    host: '127.0.0.1',
    port: 0,
    readiness: createReadiness(deps.db, deps.redis.client, temporal, stopping),
    hasStarted: () => false,
    readMetrics: async () => '',
  })
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`)
    return [answer.status, await answer.text()]
  }
  const parts = { postgres: 'ok', redis: 'ok', temporal: 'ok', process: 'stopping' }
  const body = JSON.stringify({ sentence: 'Not ready: process (stopping)', parts })
  expect(await ask('/health/ready')).toEqual([503, body])
  expect(await ask('/health/started')).toEqual([503, 'starting'])
  server.close()
})
