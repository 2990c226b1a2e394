import { connect } from 'node:net'
import type { Metrics } from '../../domain/kit/metrics.ts'
import { NO_METRICS } from '../support/by-hand.ts'
import { call, createScriptedSession, type Json, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'

let service: TestService
const lines: Json[] = []
beforeAll(async () => {
  service = await startService()
  const { logCheck, platform } = service
  const write = logCheck.write.bind(logCheck)
  logCheck.write = (line) => {
    lines.push(JSON.parse(line))
    write(line)
  }
  // Writes a line wherever events are recorded.
  const recorded: Metrics['recorded'] = ([event]) => platform.deps.log.info({ first: event?.type }, 'recorded')
  platform.deps.metrics = { ...NO_METRICS, recorded }
})
afterAll(() => service.stop())

/** Sends a request for a malformed target. Returns the head of the answer. */
function sendTarget(url: string, target: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.end(`GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`))
    socket.once('data', (data) => resolve(data.toString('latin1')))
    socket.once('error', reject)
  })
}

const withMessage = (msg: string) => lines.filter((line) => line.msg === msg)

it('have a line for each request, and its id in all of its lines', async () => {
  const headers = { 'X-Request-Id': 'request-of-a-test' }
  const id = await createScriptedSession(service.url, [{ text: 'Hi' }])
  const stream = await openStream(service.url, `/v1/sessions/${id}/sse`)
  const path = `/v1/sessions/${id}/messages`
  const { body } = await call(service.url, 'POST', path, textMessage('Hello'), headers)
  await waitUntilIdle(service.url, id)
  await call(service.url, 'GET', `/v1/nowhere/${id}`)
  await call(service.url, 'GET', '/health')
  expect(await sendTarget(service.url, 'http://[')).toMatch(/^HTTP\/1.1 400 /)
  stream.close()
  const route = '/v1/sessions/:session_id'
  await waitFor(
    async () => withMessage('request').some((line) => line.route === `${route}/sse`),
    'the line of the stream',
  )
  const common = { level: 'info', time: expect.any(String), msg: 'request', ms: expect.any(Number) }
  const own = { name: expect.any(String), requestId: 'request-of-a-test' }
  const requests = withMessage('request')
  expect(requests.find(({ requestId }) => requestId === 'request-of-a-test')).toEqual({
    ...{ ...common, ...own, method: 'POST', route: `${route}/messages`, status: 201 },
  })
  expect(requests.find((line) => line.route === `${route}/sse`)).toMatchObject({ status: 200, aborted: true })
  expect(requests.find(({ status }) => status === 404)).toMatchObject({ route: null, level: 'info' })
  expect(requests.find((line) => line.route === '/health')).toMatchObject({ level: 'debug' })
  expect(JSON.stringify(requests)).not.toContain(id)
  const turn = body.id.replace('message_', 'turn_')
  const recorded = withMessage('recorded').filter(
    (line) => line.turn === turn || line.requestId === 'request-of-a-test',
  )
  expect(recorded.find(({ first }) => first === 'input.message')).toMatchObject({ requestId: 'request-of-a-test' })
  const ofTurn = recorded.filter(({ first }) => first !== 'input.message')
  expect(ofTurn.length).toBeGreaterThan(1)
  for (const line of ofTurn) expect(line.turn).toBe(turn)
})

it('name the organization of a request if that is wanted', async () => {
  const named = await startService({ worker: false, environment: { LOG_ORGANIZATION: 'true' } })
  const seen: Json[] = []
  named.logCheck.write = (line) => void seen.push(JSON.parse(line))
  await call(named.url, 'GET', '/v1/sessions')
  await waitFor(async () => seen.some(({ msg }) => msg === 'request'), 'the line')
  await named.stop()
  const organization = 'org_00000000000000000000000000000001'
  expect(seen.find(({ msg }) => msg === 'request')).toMatchObject({ organization, route: '/v1/sessions' })
})
