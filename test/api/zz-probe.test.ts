import { createScriptedSession, type Json, listEvents, waitFor, waitUntilIdle } from '../support/http.ts'
import { createLab } from '../support/lab.ts'
import { expectSoundRecord } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { callsOf, cancel, clientTool, guardedTool, listTurns, post, postAndAsk, submit, turnIdOf, waitForEvent } from '../support/turns.ts'

const lab = createLab()
let service: TestService
let url: string
beforeAll(async () => {
  service = await startService({ environment: { CLIENT_TOOL_TIMEOUT: '1' }, capabilities: [lab.capability] })
  url = service.url
})
afterAll(() => service.stop())
const pause = (ms: number) => new Promise((r) => setTimeout(r, ms))

it('deadline race', async () => {
  const out: Json[] = []
  await Promise.all(Array.from({ length: 16 }, async (_, i) => {
    const id = await createScriptedSession(url, [{ tool_calls: callsOf('a', 'b') }, { text: 'done' }], { tools: [clientTool('a'), clientTool('b')] })
    await postAndAsk(url, id)
    const asked = (await listEvents(url, id)).find((e) => e.type === 'tool.call_requested')
    await pause(Date.parse(asked.ts) + 960 + i * 8 - Date.now())
    const r = await submit(url, id, [{ tool_call_id: 'a', result: 1 }, { tool_call_id: 'b', result: 2 }])
    const events = await waitUntilIdle(url, id)
    expectSoundRecord(events)
    const st = events.filter((e) => e.type === 'tool.completed').map((e) => e.data.status)
    out.push([r.status, ...st])
    expect(st).toEqual(r.status === 200 ? ['success', 'success'] : ['timeout', 'timeout'])
  }))
  console.log(JSON.stringify(out))
})

it('100 interrupts', async () => {
  const id = await createScriptedSession(url, Array(200).fill({ text: 'x', delay_ms: 300 }))
  await post(url, id)
  const t = Date.now()
  const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => post(url, id, `${i}`, { on_busy: 'interrupt' })))
  console.log('100 interrupts', Date.now() - t, JSON.stringify(answers.map((a) => a.status).reduce((m: Json, s) => ({ ...m, [s]: (m[s] ?? 0) + 1 }), {})))
  const events = await waitUntilIdle(url, id)
  expectSoundRecord(events)
  expect(await service.platform.deps.db.turn.count({ where: { finishedAt: null } })).toBe(0)
})

it('deaf tool, cancelled', async () => {
  const id = await createScriptedSession(url, [{ tool_calls: [{ id: 'd', name: 'deaf', arguments: {} }, { id: 'o', name: 'once', arguments: { ms: 5000 } }] }, { text: 'x' }], { capabilities: [{ ref: 'lab' }] })
  const turn = turnIdOf(await post(url, id))
  await waitForEvent(url, id, 'tool.started', 2)
  await cancel(url, id)
  const r = await post(url, id, 'next', {}, '?wait=20')
  expect(r.body.turn.status).toBe('completed')
  expectSoundRecord(await listEvents(url, id))
  console.log(turn, JSON.stringify(lab.runs))
})

it('thinking cancelled', async () => {
  const id = await createScriptedSession(url, [{ thinking: 'a b c d e f g h i j k l m n o p q', tokens_per_second: 10, text: 'x' }, { text: 'ok' }])
  await post(url, id)
  await waitForEvent(url, id, 'reason.thinking.delta', 3)
  await cancel(url, id)
  const events = await waitUntilIdle(url, id)
  expectSoundRecord(events)
  console.log(JSON.stringify(events.map((e) => e.type)))
  const r = await post(url, id, 'next', {}, '?wait=20')
  expect(r.body.turn.status).toBe('completed')
})

it('session overrides policy, empty error', async () => {
  const id = await createScriptedSession(url, [{ tool_calls: [{ id: 'free', name: 'echo', arguments: {} }] }, { text: 'x' }], { capabilities: [{ ref: 'lab' }], tools: [guardedTool('echo')] }, { tools: [{ ...guardedTool('echo'), policy: 'auto' }] })
  const r = await post(url, id, 'next', {}, '?wait=20')
  console.log(r.status, r.body.turn.status)
  const id2 = await createScriptedSession(url, [{ tool_calls: callsOf('a') }, { text: 'done' }], { tools: [clientTool('a')] })
  await postAndAsk(url, id2)
  await submit(url, id2, [{ tool_call_id: 'a', error: '' }])
  console.log(JSON.stringify((await waitUntilIdle(url, id2)).filter((e) => e.type === 'tool.completed').map((e) => e.data)))
})

it('notices', async () => {
  await waitFor(async () => (await service.platform.deps.db.turn.count({ where: { noticeDueAt: { not: null } } })) === 0, 'no notices left')
})

it('cancel with bodies', async () => {
  const id = await createScriptedSession(url, [{ text: 'done' }])
  for (const turn_id of [undefined, null]) console.log((await cancel(url, id, { turn_id })).status)
  console.log(JSON.stringify(await listTurns(url, id)))
})
