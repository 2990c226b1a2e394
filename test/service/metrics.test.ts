import { readFile } from 'node:fs/promises'
import { parse } from 'yaml'
import { freePorts } from '../../dev/services/index.ts'
import { startOpsServer } from '../../platform/wiring/ops-server.ts'
import { createScriptedSession, waitFor, waitUntilIdle } from '../support/http.ts'
import { killProcesses, startApiProcess } from '../support/process.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { post } from '../support/turns.ts'

const TURN = [{ tool_calls: [{ id: 'a', name: 'add', arguments: { a: 1, b: 2 } }] }, { text: 'three' }]

let service: TestService
let text: string
beforeAll(async () => {
  service = await startService({ worker: false })
  const [port = 0] = await freePorts(1)
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
  expect(value('agent_sessions_streams')).toBe(1)
  expect(value('agent_sessions_postgres_connections')).toBeGreaterThan(0)
})

it('say nothing about whose it was', () => {
  const labels = [...text.matchAll(/\w+="([^"]*)"/g)].map(([, value = '']) => value)
  expect(labels.length).toBeGreaterThan(100)
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
  expect(expressions.length).toBeGreaterThan(30)
  // Counters with labels have no sample before something happens.
  const declared = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name))
  const missing = expressions
    .flatMap(namesOf)
    .filter((name) => !exists(name) && !declared.has(name) && !declared.has(name.replace(/_bucket$/, '')))
  expect(missing).toEqual([])
})

it('need a port that is free', async () => {
  const options = {
    host: '127.0.0.1',
    readiness: service.platform.readiness,
    hasStarted: () => false,
    readMetrics: async () => '',
  }
  const first = await startOpsServer({ ...options, port: 0 })
  const second = startOpsServer({ ...options, port: first.port })
  await expect(second).rejects.toThrow(`METRICS_PORT: port ${first.port} of 127.0.0.1 is taken`)
  const answer = await fetch(`http://127.0.0.1:${first.port}/health/started`)
  expect([answer.status, await answer.text()]).toEqual([503, 'starting'])
  first.close()
})
