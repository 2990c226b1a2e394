import { QUESTION_TOOL } from '../../contract/turns.ts'
import { createScriptedSession, expectError, type Json, waitUntilIdle } from '../support/http.ts'
import { expectSoundRecord } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'
import { post, postAndAsk, submit } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const capabilities = [{ ref: 'ask_user' }]
const createAsking = (given: object) =>
  createScriptedSession(
    api,
    [{ tool_calls: [{ id: 'a', name: 'ask_user', arguments: { question: 'Which?', ...given } }] }, { text: 'done' }],
    { capabilities },
  )

/** Returns what the model is told: the results of its call. */
const toldIn = (events: Json[]) =>
  events
    .filter(({ type, data }) => type === 'tool.completed' && data.tool_call_id === 'a')
    .map(({ data }) => (data.success ? JSON.parse(data.result[0].text) : data.error))

const form = { type: 'object', properties: { city: { type: 'string' }, nights: { type: 'integer', minimum: 1 } } }
const accept = (content?: unknown) => ({ action: 'accept', ...(content === undefined ? {} : { content }) })

const CASES = [
  {
    given: { choices: ['beach', 'museum'] },
    wrong: [
      [accept({ answer: 'opera' }), 'answer must be one of ["beach","museum"]'],
      [accept({ answer: ['beach'] }), 'answer must be'],
      [accept({}), 'answer is required'],
      [accept(), 'answer is required'],
    ],
    right: accept({ answer: 'beach' }),
    told: { status: 'answered', answer: 'beach' },
  },
  {
    given: { choices: ['beach', 'museum'], multiple: true },
    wrong: [
      [accept({ answer: 'beach' }), 'answer must be array'],
      [accept({ answer: [] }), 'answer must NOT have fewer than 1 items'],
    ],
    right: accept({ answer: ['museum', 'beach'] }),
    told: { status: 'answered', answer: ['museum', 'beach'] },
  },
  {
    given: { schema: { ...form, required: ['city'], additionalProperties: false } },
    wrong: [
      [accept({ nights: 2 }), 'city is required'],
      [accept({ city: 'Rome', nights: 0 }), 'nights must be >= 1'],
      [accept({ city: 'Rome', room: 1 }), 'room is not one of the fields'],
    ],
    right: accept({ city: 'Rome', nights: 2 }),
    told: { status: 'answered', answer: { city: 'Rome', nights: 2 } },
  },
  {
    given: {},
    wrong: [[accept({ answer: '' }), 'answer must NOT have fewer']],
    right: { action: 'decline' },
    told: { status: 'declined' },
  },
] as const

describe('the capability ask_user', () => {
  it.each(CASES)('asks with $given, refuses what does not fit, and tells the model the answer', async (one) => {
    const id = await createAsking(one.given)
    const [question] = (await postAndAsk(api, id)).pending_tool_calls
    expect(question).toMatchObject({
      name: QUESTION_TOOL,
      kind: 'client_tool',
      arguments: { tool: 'ask_user', message: 'Which?', requested_schema: { type: 'object' } },
    })
    const answer = (result: object) => submit(api, id, [{ tool_call_id: question.id, result }])
    for (const [result, problem] of one.wrong) {
      const refused = await answer(result)
      expectError(refused, 400, /^tool_results\.0\.result\.content: must fit the schema of the question: /)
      expect(refused.body.error).toContain(problem)
    }
    expect((await answer(one.right)).body).toEqual({ accepted: 1, status: 'active' })
    const events = await waitUntilIdle(api, id)
    expectSoundRecord(events)
    expect(toldIn(events)).toEqual([one.told])
  })

  it.each([
    ['choices and a schema', { choices: ['a', 'b'], schema: form }, 'Give either choices or schema.'],
    ['a schema without fields', { schema: { type: 'object' } }, 'The schema needs properties'],
    ['a wrong schema', { schema: { properties: { a: { type: 'text' } } } }, 'The schema cannot be used: must be'],
    ['a long schema', { schema: { properties: { a: { title: 'x'.repeat(10_000) } } } }, 'at most 10000'],
    ['one choice', { choices: ['a'] }, 'choices must NOT have fewer than 2 items'],
  ])('tells the model of %s, and does not ask', async (_, given, problem) => {
    const id = await createAsking(given)
    await post(api, id)
    const [told] = toldIn(await waitUntilIdle(api, id))
    expect(told).toContain(problem)
  })

  it('stops an answer whose schema takes for ever to check', async () => {
    const slow = { properties: { a: { type: 'string', pattern: '^(a+)+$' } } }
    const id = await createAsking({ schema: slow })
    const [question] = (await postAndAsk(api, id)).pending_tool_calls
    const result = accept({ a: `${'a'.repeat(60)}!` })
    expectError(await submit(api, id, [{ tool_call_id: question.id, result }]), 400, /could not be checked in time/)
    expect((await submit(api, id, [{ tool_call_id: question.id, result: { action: 'cancel' } }])).status).toBe(200)
    expect(toldIn(await waitUntilIdle(api, id))).toEqual([{ status: 'dismissed' }])
  })
})
