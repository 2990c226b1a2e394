import { call, createSession, listEvents, textMessage, waitUntilIdle } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { openStream } from '../support/stream.ts'
import { withClient } from '../support/temporal.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

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
  it('has the specified events in the specified order', async () => {
    const id = await createSession(api)
    await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
    const events = await waitUntilIdle(api, id)
    expect(events.map((event) => event.type)).toEqual(FIRST_TURN)
    expect(events.map((event) => event.sequence)).toEqual(FIRST_TURN.map((_, index) => index + 1))
  })

  it('has session.started in its first turn only', async () => {
    const id = await createSession(api)
    for (const text of ['one', 'two']) {
      await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage(text))
    }
    const events = await listEvents(api, id)
    expect(events.map((event) => event.type)).toEqual([
      ...FIRST_TURN,
      ...FIRST_TURN.filter((type) => type !== 'session.started'),
    ])
  })

  it('tells in its workflow what it did', async () => {
    const id = await createSession(api)
    const { turn } = (await call(api, 'POST', `/v1/sessions/${id}/messages?wait=60`, textMessage('Hello'))).body
    const workflow = await withClient({}, async (client) => {
      const handle = client.workflow.getHandle(turn.id)
      const result = await handle.result()
      return { result, details: await handle.query('__temporal_workflow_metadata') }
    })
    const { input_tokens, output_tokens } = turn.usage
    const timeline = `/console#/sessions/${id}/turns/${turn.id}`
    expect(workflow.result).toEqual({
      ...{ outcome: 'completed', model: 'llmsim-default', iterations: 1, finishReason: 'stop', timeline },
      ...{ inputTokens: input_tokens, outputTokens: output_tokens, durationMs: expect.any(Number) },
    })
    const details = new RegExp(`^completed · llmsim-default · .* tokens ${input_tokens} in.* ms · /console#/sessions/`)
    expect(workflow.details).toMatchObject({ currentDetails: expect.stringMatching(details) })
  })

  it('streams the same events as the list', async () => {
    const id = await createSession(api)
    const stream = await openStream(api, `/v1/sessions/${id}/sse`)
    await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Hello'))
    await stream.until((frame) => frame.event === 'session.idled')
    stream.close()
    expect(stream.events()).toEqual(await listEvents(api, id))
  })
})
