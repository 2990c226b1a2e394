import {
  call,
  createScriptedSession,
  createSession,
  expectError,
  type Json,
  textMessage,
  unknownId,
  waitFor,
} from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const turns = (id: string, query = '') => call(service.url, 'GET', `/v1/sessions/${id}/turns${query}`)
const post = (id: string, query = '') =>
  call(service.url, 'POST', `/v1/sessions/${id}/messages${query}`, textMessage('Hello'))
const statuses = (body: Json): string[] => body.data.map((turn: Json) => turn.status)

describe('turns', () => {
  it('are listed newest first, each with what became of it', async () => {
    const id = await createScriptedSession(service.url, [
      { text: 'Fine.' },
      { error: { status: 400, message: 'No.' } },
      { text: 'Slow.', delay_ms: 2000 },
    ])
    const first = await post(id, '?wait=20')
    const second = await post(id, '?wait=20')
    await post(id)
    await post(id)
    const { body } = await waitFor(async () => {
      const answer = await turns(id)
      return answer.body.data[1]?.status === 'active' && answer
    }, 'the third turn to be active')
    expect(statuses(body)).toEqual(['queued', 'active', 'failed', 'completed'])
    expect(body.data[3]).toEqual(first.body.turn)
    expect(body.data[2]).toEqual(second.body.turn)
    expect(body.data[0]).toMatchObject({ started_at: null, finished_at: null, pending_tool_calls: [], iterations: 0 })
    expect(first.body.turn).toMatchObject({
      id: expect.stringMatching(/^turn_[0-9a-f]{32}$/),
      session_id: id,
      workflow_id: first.body.turn.id,
      started_at: expect.stringMatching(/Z$/),
      finished_at: expect.stringMatching(/Z$/),
    })
    expect(statuses((await turns(id, '?status=failed')).body)).toEqual(['failed'])
    expect(statuses((await turns(id, '?status=waiting')).body)).toEqual([])
    expect(statuses((await turns(id, '?offset=2&limit=1')).body)).toEqual(['failed'])
  })

  it('are got by id, in their own session only', async () => {
    const id = await createSession(service.url)
    const { turn } = (await post(id, '?wait=20')).body
    const got = await call(service.url, 'GET', `/v1/sessions/${id.replace('session_', 'sess_')}/turns/${turn.id}`)
    expect([got.status, got.body]).toEqual([200, turn])
    const other = await createSession(service.url)
    for (const path of [
      `${other}/turns/${turn.id}`,
      `${id}/turns/${unknownId('turn')}`,
      `${unknownId('session')}/turns/${turn.id}`,
    ]) {
      expectError(await call(service.url, 'GET', `/v1/sessions/${path}`), 404, 'not found')
    }
  })

  it('are not found in a session that is not there', async () => {
    expectError(await turns(unknownId('session')), 404, 'Session not found')
  })

  it('are not listed for a wrong query or id', async () => {
    const id = await createSession(service.url)
    expectError(await turns(id, '?status=done'), 400, /^status: .*completed/)
    expectError(await turns(id, '?limit=-1'), 400, /^limit: /)
    expectError(await turns('session_1'), 400, /^session_id: /)
    expectError(await call(service.url, 'GET', `/v1/sessions/${id}/turns/${unknownId('message')}`), 400, /^turn_id: /)
  })
})
