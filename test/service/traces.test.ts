import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { NO_TRACING } from '../../domain/kit/tracing.ts'
import { parseTraceparent } from '../../lib/traceparent.ts'
import { type CollectedSpan, type Collector, startCollector } from '../support/collector.ts'
import { call, createScriptedSession, type Json, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { request, SCHEDULES, YEARLY } from '../support/schedules.ts'
import { startService, type TestService, withService } from '../support/service.ts'
import { type StatelessServer, startStatelessServer } from '../support/stateless-mcp-server.ts'
import { cancel, MUTE, post, turnIdOf, waitForEvent } from '../support/turns.ts'

let collector: Collector
let service: TestService
let server: StatelessServer
let tool: string
let agent: Json

beforeAll(async () => {
  collector = await startCollector()
  server = await startStatelessServer()
  service = await startService({ environment: environmentOf(collector) })
  const { id } = (await call(service.url, 'POST', '/v1/mcp-servers', { name: 'S', url: server.url })).body
  const path = `/v1/mcp-servers/${id}`
  await waitFor(async () => (await call(service.url, 'GET', path)).body.tools_count !== null, 'its tools')
  tool = 'mcp_s__echo'
  agent = { name: 'Greeter', capabilities: [{ ref: `mcp:${toUuid(id)}` }] }
})
afterAll(async () => {
  await service.stop()
  await server.stop()
  await collector.stop()
})

const environmentOf = ({ url }: Collector, more: Record<string, string> = {}) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_EXPORTER_OTLP_HEADERS: 'x-key=one%20two,x-other=b',
  OTEL_SERVICE_NAME: 'named-by-a-test',
  ALLOW_PRIVATE_NETWORK: 'true',
  ...more,
})

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const CALLER = 'b7ad6b7169203331'
const steps = () => [
  { tool_calls: [{ id: 'one', name: tool, arguments: { name: 'Marguerite' } }] },
  { text: 'Bonjour' },
]

const ofTurn = (turn: string, name: RegExp) => (span: CollectedSpan) =>
  span.attributes['agent_sessions.turn.id'] === turn && name.test(span.name)

async function postTraced(id: string, traceparent: string): Promise<string> {
  const path = `/v1/sessions/${id}/messages`
  return turnIdOf(await call(service.url, 'POST', path, textMessage('Salut'), { traceparent }))
}

it('has spans of the request, the turn, its model calls and its tool, below the place of the caller', async () => {
  const id = await createScriptedSession(service.url, steps(), agent)
  const turn = await postTraced(id, `00-${TRACE}-${CALLER}-01`)
  await waitUntilIdle(service.url, id)
  const root = await collector.find(ofTurn(turn, /^invoke_agent/), 'the span of the turn')
  const received = await collector.find(({ spanId }) => spanId === root.parentSpanId, 'the span of the request')
  await waitFor(async () => collector.spans.filter(ofTurn(turn, /./)).length === 4, 'all spans of the turn')
  expect(received).toMatchObject({
    name: 'POST /v1/sessions/:session_id/messages',
    ...{ kind: 2, traceId: TRACE, parentSpanId: CALLER, service: 'named-by-a-test', isError: false },
    attributes: { 'http.route': '/v1/sessions/:session_id/messages', 'http.response.status_code': 201 },
  })
  const common = { 'gen_ai.conversation.id': id, 'agent_sessions.turn.id': turn }
  expect(root).toMatchObject({ name: 'invoke_agent Greeter', kind: 1, traceId: TRACE, isError: false })
  expect(root.attributes).toEqual({
    ...common,
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.provider.name': 'agent-session-service',
    'gen_ai.agent.id': expect.stringMatching(/^agent_/),
    'gen_ai.agent.name': 'Greeter',
    'gen_ai.usage.input_tokens': expect.any(Number),
    'gen_ai.usage.output_tokens': expect.any(Number),
    'agent_sessions.turn.queue_seconds': expect.any(Number),
  })
  const below = collector.spans.filter((span) => span.parentSpanId === root.spanId)
  expect(below.map(({ name }) => name).toSorted()).toEqual([
    'chat llmsim-script',
    'chat llmsim-script',
    `execute_tool ${tool}`,
  ])
  for (const span of below) expect(span).toMatchObject({ traceId: TRACE, isError: false, attributes: common })
  const [first] = below.filter(({ attributes }) => attributes['agent_sessions.turn.iteration'] === 1)
  expect(first?.attributes).toMatchObject({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'llmsim',
    'gen_ai.request.model': 'llmsim-script',
    'gen_ai.response.finish_reasons': ['tool_calls'],
    'gen_ai.usage.output_tokens': expect.any(Number),
  })
  const executed = below.find(({ name }) => name.startsWith('execute_tool'))
  expect(executed?.attributes).toEqual({
    ...common,
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': tool,
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.call.id': 'one',
    'agent_sessions.turn.iteration': 1,
  })
  const called = server.received.filter(({ method }) => method === 'tools/call')
  expect(called.map(({ headers }) => headers.traceparent)).toContain(`00-${TRACE}-${executed?.spanId}-01`)
  expect(JSON.stringify(collector.spans)).not.toMatch(/Salut|Bonjour|Marguerite|Play the script/)
  expect(collector.requests[0]).toMatchObject({ 'x-key': 'one two', 'x-other': 'b' })
})

it('leaves out what the caller does not sample, and begins a trace where the traceparent is malformed', async () => {
  const id = await createScriptedSession(service.url, steps(), agent)
  const hidden = await postTraced(id, `00-${TRACE}-${CALLER}-00`)
  await waitUntilIdle(service.url, id)
  const other = await createScriptedSession(service.url, [{ text: 'Bonjour' }])
  const turn = await postTraced(other, `00-${TRACE}-${'0'.repeat(16)}-01`)
  const root = await collector.find(ofTurn(turn, /^invoke_agent/), 'the span of the turn')
  expect(root.traceId).not.toBe(TRACE)
  expect(collector.spans.filter(ofTurn(hidden, /./))).toEqual([])
  expect(server.received.at(-1)?.headers.traceparent).toMatch(new RegExp(`^00-${TRACE}-.{16}-00$`))
})

it('has each attempt at a model call, and its error', async () => {
  const failing = [{ error: { message: 'Too busy', status: 503, times: 1, retry_after_ms: 100 }, text: 'Bonjour' }]
  const retried = await createScriptedSession(service.url, failing)
  const turn = turnIdOf(await post(service.url, retried))
  await collector.find(ofTurn(turn, /^invoke_agent/), 'the span of the turn')
  const calls = collector.spans.filter(ofTurn(turn, /^chat/)).map(({ attributes }) => attributes['error.type'])
  expect(calls.toSorted()).toEqual(['503', undefined])
})

it('has the errors of turns, and the ends that others record', async () => {
  const failed = await createScriptedSession(service.url, [{ error: { message: 'No', status: 400 } }])
  const lost = turnIdOf(await post(service.url, failed))
  expect(await collector.find(ofTurn(lost, /^invoke_agent/), 'the failed turn')).toMatchObject({
    ...{ isError: true, attributes: { 'error.type': 'llm_error' } },
  })
  const mute = await createScriptedSession(service.url, [MUTE])
  const ended = turnIdOf(await post(service.url, mute))
  await waitForEvent(service.url, mute, 'reason.started')
  await cancel(service.url, mute)
  expect(await collector.find(ofTurn(ended, /^invoke_agent/), 'the cancelled turn')).toMatchObject({
    ...{ isError: true, attributes: { 'error.type': 'cancelled' } },
  })
})

it('is sent on with the requests of schedules, whose messages begin traces of their own', async () => {
  const places: (string | undefined)[] = []
  const hook = createServer((incoming, response) => {
    places.push(String(incoming.headers.traceparent))
    response.end('{}')
  })
  await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve))
  const { port } = hook.address() as AddressInfo
  const target = request({ url: `http://127.0.0.1:${port}/`, method: 'POST' })
  const body = { name: 'Hook', cron_expression: YEARLY, target }
  const { id } = (await call(service.url, 'POST', SCHEDULES, body)).body
  await call(service.url, 'POST', `${SCHEDULES}/${id}/trigger`)
  await waitFor(async () => places.length > 0, 'the request')
  const place = parseTraceparent(places[0] ?? '')
  const sent = await collector.find(({ spanId }) => spanId === place?.spanId, 'the span of the request')
  expect(sent).toMatchObject({ name: 'POST', kind: 3, parentSpanId: undefined })
  hook.closeAllConnections()
  hook.close()
})

it('has contents if operators want them', async () => {
  const own = await startCollector()
  const environment = environmentOf(own, { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true' })
  await withService({ environment }, async ({ url }) => {
    const id = await createScriptedSession(url, [
      { tool_calls: [{ id: 'one', name: 'get_current_time', arguments: {} }] },
      { text: 'Bonjour' },
    ])
    const turn = turnIdOf(await post(url, id, 'Salut'))
    await own.find(ofTurn(turn, /^invoke_agent/), 'the span of the turn')
    const last = own.spans.find((span) => span.attributes['agent_sessions.turn.iteration'] === 2)
    expect(JSON.parse(String(last?.attributes['gen_ai.input.messages']))).toMatchObject([
      { role: 'user', parts: [{ type: 'text', content: 'Salut' }] },
      { role: 'assistant', parts: [{ type: 'tool_call', id: 'one', name: 'get_current_time' }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'one' }] },
    ])
    expect(JSON.parse(String(last?.attributes['gen_ai.output.messages']))).toEqual([
      { role: 'assistant', parts: [{ type: 'text', content: 'Bonjour' }], finish_reason: 'stop' },
    ])
    expect(last?.attributes['gen_ai.system_instructions']).toContain('Play the script')
    const secret = { operation: 'set', name: 'KEY', value: 'hunter2' }
    const keeping = [{ tool_calls: [{ id: 'two', name: 'secret_store', arguments: secret }] }, { text: 'Kept' }]
    const other = await createScriptedSession(url, keeping, { capabilities: [{ ref: 'session_storage' }] })
    const kept = turnIdOf(await post(url, other, 'Keep it'))
    await own.find(ofTurn(kept, /^invoke_agent/), 'the span of the turn that keeps a secret')
    const spans = own.spans.filter(ofTurn(kept, /./)).map((span) => JSON.stringify(span))
    expect(spans.filter((span) => span.includes('secret_store')).length).toBeGreaterThan(1)
    expect(spans.filter((span) => span.includes('[secret]')).length).toBeGreaterThan(0)
    // The instructions have the script.
    const answers = own.spans.map((span) => JSON.stringify({ ...span.attributes, 'gen_ai.system_instructions': '' }))
    expect(answers.join()).not.toContain('hunter2')
  })
  await own.stop()
})

it('does nothing without a collector', async () => {
  await withService({ worker: false }, async ({ platform }) => {
    expect(platform.deps.tracing).toBe(NO_TRACING)
    expect(platform.deps.outgoing.traceparent).toBeUndefined()
  })
})
