import { call, createSession, listEvents, textMessage, waitUntilIdle } from '../support/http.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.stop())

const FIRST_TURN = [
  'input.message',
  'session.started',
  'session.activated',
  'turn.started',
  'reason.started',
  'output.message.started',
  'output.message.delta',
  'llm.generation',
  'output.message.completed',
  'reason.completed',
  'turn.completed',
  'session.idled',
]

describe('a plain turn', () => {
  it('has the decided events in the decided order', async () => {
    const { url } = service
    const id = await createSession(url)
    await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
    const events = await waitUntilIdle(url, id)
    expect(events.map((event) => event.type)).toEqual(FIRST_TURN)
    expect(events.map((event) => event.sequence)).toEqual(FIRST_TURN.map((_, index) => index + 1))
  })

  it('has session.started in its first turn only', async () => {
    const { url } = service
    const id = await createSession(url)
    for (const text of ['one', 'two']) {
      await call(url, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage(text))
    }
    const events = await listEvents(url, id)
    expect(events.map((event) => event.type)).toEqual([
      ...FIRST_TURN,
      ...FIRST_TURN.filter((type) => type !== 'session.started'),
    ])
  })

  it('streams the same events that the list tells', async () => {
    const { url } = service
    const id = await createSession(url)
    const stream = await openStream(url, `/v1/sessions/${id}/sse`)
    await call(url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
    await stream.until((frame) => frame.event === 'session.idled')
    stream.close()
    expect(stream.events()).toEqual(await listEvents(url, id))
  })
})
