import type { ElicitResult } from '@modelcontextprotocol/client'
import { call, type Json, unknownId } from '../support/http.ts'
import { closeFaceClients, connectToFace, createScriptedAgent, type Era, type FaceClient } from '../support/mcp-face.ts'
import { countRows, newOrganization, type Organization } from '../support/shared/service.ts'
import { callsOf, clientTool, guardedTool, listTurns, MUTE, waitForEvent } from '../support/turns.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})
afterEach(closeFaceClients)

const ERAS: Era[] = ['legacy', 'modern']
const ANSWERED = { session: expect.stringMatching(/^session_/), turn: expect.stringMatching(/^turn_/), pending: [] }

const start = async ({ tool }: FaceClient, agent: string, more: object = {}): Promise<Json> =>
  (await tool('agent_start', { agent, message: 'Go', ...more })).structuredContent

/** Expects that a tool fails with a sentence, which is not an error of the protocol. */
async function expectToolError(answer: Promise<Json>, sentence: RegExp): Promise<void> {
  expect(await answer).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(sentence) }] })
}

describe.each(ERAS)('a client of the %s protocol', (era) => {
  it('lists four tools, and the agents of its organization as an enum', async () => {
    const own = await newOrganization()
    const { name } = await createScriptedAgent(own, [], { name: 'Ada', description: 'Knows\nsums.' })
    const twin = () => createScriptedAgent(own, [], { name: 'Twin' })
    const [first, second] = [await twin(), await twin()]
    const gone = await createScriptedAgent(own, [])
    await call(own, 'DELETE', `/v1/agents/${gone.id}`)
    const { client } = await connectToFace(own, { era })
    expect(client.getProtocolEra()).toBe(era)
    const { tools } = await client.listTools()
    expect(tools.map((tool) => tool.name)).toEqual(['agent_start', 'agent_get', 'agent_send', 'agent_cancel'])
    expect(tools[0]?.inputSchema.properties?.agent).toMatchObject({ enum: [second.id, first.id, name] })
    expect(tools[0]?.description).toContain(`Agents:\n- ${second.id}: Twin\n- ${first.id}: Twin\n- Ada: Knows sums.`)
  })

  it('starts an agent, gets its answer, and continues the session', async () => {
    const { name, id } = await createScriptedAgent(api, [{ text: 'Forty-two.' }, { text: 'Sure.' }, { text: 'Yes.' }])
    const face = await connectToFace(api, { era })
    const first = await face.tool('agent_start', { agent: name, message: 'Six by seven?' })
    const answer = first.structuredContent
    expect(answer).toEqual({ ...ANSWERED, status: 'completed', text: 'Forty-two.' })
    expect(first.isError).toBeFalsy()
    expect(first.content[0].text).toBe('Forty-two.')
    expect(first.content.at(-1).text).toBe(`session: ${answer.session}\nturn: ${answer.turn}\nstatus: completed`)
    const { session } = answer
    expect(await start(face, id, { session })).toMatchObject({ session, status: 'completed', text: 'Sure.' })
    const sent = await face.tool('agent_send', { session, message: 'Really?' })
    expect(sent.structuredContent).toMatchObject({ session, status: 'completed', text: 'Yes.' })
    expect((await listTurns(api, session)).map((turn) => turn.status)).toEqual(Array(3).fill('completed'))
  })

  it('asks again and again for an answer that takes long', async () => {
    const { name } = await createScriptedAgent(api, [{ delay_ms: 1500, text: 'At last.' }])
    const face = await connectToFace(api, { era })
    const { session, turn, status } = await start(face, name, { wait_seconds: 0 })
    expect(['queued', 'active']).toContain(status)
    const asked: Json[] = []
    while (asked.at(-1)?.status !== 'completed') {
      asked.push((await face.tool('agent_get', { session, wait_seconds: 0.4 })).structuredContent)
    }
    expect(asked.length).toBeGreaterThan(1)
    expect(asked.at(-1)).toEqual({ session, turn, status: 'completed', text: 'At last.', pending: [] })
    expect((await face.tool('agent_get', { session, turn })).structuredContent).toEqual(asked.at(-1))
  })

  it('gives the results of client tools by agent_send', async () => {
    const steps = [{ text: 'Hm.', tool_calls: callsOf('ask', 'look') }, { text: 'Thanks.' }]
    const { name } = await createScriptedAgent(api, steps, { tools: [clientTool('ask'), clientTool('look')] })
    const face = await connectToFace(api, { era })
    const answer = await start(face, name)
    const pendingOf = (...names: string[]) => names.map((id) => ({ id, name: id, kind: 'client_tool', arguments: {} }))
    expect(answer).toMatchObject({ status: 'waiting', text: 'Hm.', pending: pendingOf('ask', 'look') })
    const { session } = answer
    const send = (args: object) => face.tool('agent_send', { session, ...args })
    await expectToolError(
      send({ results: [{ call_id: 'other', result: 1 }] }),
      /other is not pending; pending are: ask, look/,
    )
    await expectToolError(
      send({ results: [{ call_id: 'ask', result: 1 }], message: 'Go' }),
      /^message: must be given.*not both/,
    )
    await expectToolError(send({}), /^message: must be given.*not both/)
    const half = await send({ results: [{ call_id: 'ask', result: { it: 1 } }] })
    expect(half.structuredContent).toMatchObject({ status: 'waiting', pending: pendingOf('look') })
    const done = await send({ results: [{ call_id: 'look', error: 'too dark' }] })
    expect(done.structuredContent).toMatchObject({
      turn: answer.turn,
      status: 'completed',
      text: 'Thanks.',
      pending: [],
    })
    await expectToolError(send({ results: [{ call_id: 'ask', result: 1 }] }), /not waiting/)
    const events = await waitForEvent(api, session, 'tool.completed', 2)
    const results = events
      .filter(({ type }) => type === 'tool.completed')
      .map(({ data }) => [data.result?.[0].text, data.error])
    expect(results).toEqual([
      ['{"it":1}', null],
      [undefined, 'too dark'],
    ])
  })

  it('cancels a turn once, however often it asks', async () => {
    const { name } = await createScriptedAgent(api, [MUTE])
    const face = await connectToFace(api, { era })
    const { session, turn } = await start(face, name, { wait_seconds: 0 })
    const first = await face.tool('agent_cancel', { session, turn })
    expect(first.structuredContent).toEqual({ session, turn, status: 'cancelled', pending: [] })
    expect(first.content[0].text).toBe('The turn was cancelled.')
    const again = await face.tool('agent_cancel', { session })
    expect(again.structuredContent).toEqual(first.structuredContent)
    expect(again.content[0].text).toBe('There is nothing to cancel.')
    const got = await face.tool('agent_get', { session })
    expect(got.structuredContent.status).toBe('cancelled')
  })

  it('is told what the agent does, in numbers that grow', async () => {
    const wait = { tool_calls: [{ id: 'w', name: 'wait', arguments: { ms: 2500 } }] }
    const { name } = await createScriptedAgent(api, [wait, { text: 'Done.' }], { capabilities: [{ ref: 'lab' }] })
    const { tool } = await connectToFace(api, { era })
    const heard: Json[] = []
    const onprogress = (progress: Json) => heard.push(progress)
    const { structuredContent } = await tool('agent_start', { agent: name, message: 'Go' }, { onprogress })
    expect(structuredContent).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(heard.map(({ message }) => message)).toEqual(expect.arrayContaining(['thinking', 'running The wait tool']))
    const numbers = heard.map(({ progress }) => progress)
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  })

  it('leaves the turn alone when it stops to wait', async () => {
    const { name } = await createScriptedAgent(api, [{ delay_ms: 1500, text: 'Still here.' }])
    const face = await connectToFace(api, { era })
    const { session } = await start(face, name, { wait_seconds: 0 })
    await expect(face.tool('agent_get', { session }, { timeout: 200 })).rejects.toThrow(/timed out/i)
    const got = await face.tool('agent_get', { session })
    expect(got.structuredContent).toMatchObject({ status: 'completed', text: 'Still here.' })
  })

  it('is told why a turn has failed', async () => {
    const { name } = await createScriptedAgent(api, [{ error: { status: 400, message: 'no such thing' } }])
    const answer = await start(await connectToFace(api, { era }), name)
    expect(answer).toMatchObject({ status: 'failed', error: expect.any(String) })
  })
})

describe('an approval', () => {
  const GUARDED = { capabilities: [{ ref: 'lab' }], tools: [guardedTool('echo')] }
  let number = 0
  /** Creates an agent that calls the guarded tool once. */
  const createGuarded = async (args: object = { text: 'hi' }) => {
    const callId = `mcp-face-${number++}`
    const steps = [{ tool_calls: [{ id: callId, name: 'echo', arguments: args }] }, { text: 'Done.' }]
    return { callId, ...(await createScriptedAgent(api, steps, GUARDED)) }
  }
  const runsOf = async (callId: string) => (await api.labRuns()).filter((run) => run.callId === callId)
  const errorsOf = async (session: string): Promise<Json[]> => {
    const events = await waitForEvent(api, session, 'tool.completed')
    return events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data.error)
  }

  /** Starts the agent for a client whose user fills in each form so. Returns the answer, and the forms. */
  async function startAsking(name: string, ...answers: ElicitResult[]) {
    const forms: string[] = []
    const fillIn = (message: string): ElicitResult => {
      forms.push(message)
      return answers[forms.length - 1] ?? { action: 'cancel' }
    }
    const face = await connectToFace(api, { fillIn })
    return { face, forms, answer: await start(face, name) }
  }

  it('is asked of the user in a form, and given', async () => {
    const { name, callId } = await createGuarded()
    const { answer, forms } = await startAsking(name, { action: 'accept', content: { approved: true } })
    expect(answer).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(forms).toEqual(['May the agent call echo?\n\n{\n  "text": "hi"\n}'])
    expect(await runsOf(callId)).toHaveLength(1)
    expect(await listTurns(api, answer.session)).toHaveLength(1)
  })

  it.each<[string, ElicitResult, RegExp]>([
    ['refused with a reason', { action: 'accept', content: { approved: false, reason: 'too late' } }, /too late/],
    ['declined', { action: 'decline' }, /did not approve/],
  ])('is asked of the user in a form, and %s', async (_, filled, error) => {
    const { name, callId } = await createGuarded()
    const { answer, forms } = await startAsking(name, filled)
    expect(answer).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(forms).toHaveLength(1)
    expect(await runsOf(callId)).toEqual([])
    expect(await errorsOf(answer.session)).toEqual([expect.stringMatching(error)])
  })

  it.each<[string, ElicitResult]>([
    ['dismissed', { action: 'cancel' }],
    ['left empty', { action: 'accept', content: {} }],
  ])('waits on when the form is %s, and can be given later', async (_, filled) => {
    const { name, callId } = await createGuarded()
    const { face, answer, forms } = await startAsking(name, filled, { action: 'accept', content: { approved: true } })
    const pending = [{ id: callId, name: 'echo', kind: 'approval', arguments: { text: 'hi' } }]
    expect(answer).toMatchObject({ status: 'waiting', pending })
    expect(forms).toHaveLength(1)
    expect(await runsOf(callId)).toEqual([])
    const later = await face.tool('agent_get', { session: answer.session })
    expect(later.structuredContent).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(await runsOf(callId)).toHaveLength(1)
  })

  it('of a call that a form cannot show in full is left to agent_send', async () => {
    const { name, callId } = await createGuarded({ text: 'x'.repeat(5000) })
    const { answer, forms } = await startAsking(name)
    expect(answer).toMatchObject({ status: 'waiting', pending: [{ id: callId }] })
    expect(forms).toEqual([])
  })

  it.each(ERAS)('is given and refused by agent_send, by a client of the %s protocol without forms', async (era) => {
    const [yes, no] = [await createGuarded(), await createGuarded()]
    const face = await connectToFace(api, { era })
    const { session, pending } = await start(face, yes.name)
    expect(pending).toEqual([{ id: yes.callId, name: 'echo', kind: 'approval', arguments: { text: 'hi' } }])
    const approve = (session: string, approval: object) => face.tool('agent_send', { session, approvals: [approval] })
    const given = await approve(session, { call_id: yes.callId, approved: true })
    expect(given.structuredContent).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(await runsOf(yes.callId)).toHaveLength(1)
    const other = await start(face, no.name)
    const refused = await approve(other.session, { call_id: no.callId, approved: false, reason: 'not today' })
    expect(refused.structuredContent).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(await errorsOf(other.session)).toEqual([expect.stringMatching(/not today/)])
    expect(await runsOf(no.callId)).toEqual([])
  })
})

describe('an agent', () => {
  it('is refused with a sentence when it is unknown, archived, ambiguous or of another organization', async () => {
    const own = await newOrganization()
    const archived = await createScriptedAgent(own, [])
    await call(own, 'DELETE', `/v1/agents/${archived.id}`)
    const twins = [
      await createScriptedAgent(own, [], { name: 'Twin' }),
      await createScriptedAgent(own, [], { name: 'Twin' }),
    ]
    const foreign = await createScriptedAgent(api, [])
    const { tool } = await connectToFace(own)
    const startWith = (agent: string) => tool('agent_start', { agent, message: 'Go' })
    await expectToolError(startWith('Nobody'), /no agent named "Nobody"/)
    await expectToolError(startWith(unknownId('agent')), /there is no agent agent_/)
    await expectToolError(startWith(archived.name), /is archived/)
    await expectToolError(startWith(archived.id), /is archived/)
    await expectToolError(startWith('Twin'), new RegExp(`several .*${twins[1]?.id}, ${twins[0]?.id}`))
    await expectToolError(startWith(foreign.id), /there is no agent/)
    await expectToolError(startWith(foreign.name), /no agent named/)
    expect(await countRows(own, 'sessions')).toBe(0)
  })

  it('continues only its own sessions', async () => {
    const [one, other] = [await createScriptedAgent(api, [{ text: 'One.' }]), await createScriptedAgent(api, [])]
    const face = await connectToFace(api)
    const { session } = await start(face, one.name)
    await expectToolError(face.tool('agent_start', { agent: other.name, message: 'Go', session }), /another agent/)
    expect(await listTurns(api, session)).toHaveLength(1)
  })
})

describe('a session', () => {
  it('of another organization is like a missing one', async () => {
    const { name } = await createScriptedAgent(api, [MUTE])
    const { session, turn } = await start(await connectToFace(api), name, { wait_seconds: 0 })
    const own = await newOrganization()
    const mine = await createScriptedAgent(own, [])
    const { tool } = await connectToFace(own)
    const missing = unknownId('session')
    for (const id of [session, missing]) {
      await expectToolError(tool('agent_get', { session: id }), /^Session not found$/)
      await expectToolError(tool('agent_get', { session: id, turn }), /^Turn not found$/)
      await expectToolError(tool('agent_send', { session: id, message: 'Hi' }), /^Session not found$/)
      await expectToolError(
        tool('agent_send', { session: id, approvals: [{ call_id: 'a', approved: true }] }),
        /not found$/,
      )
      await expectToolError(tool('agent_cancel', { session: id }), /^Session not found$/)
      await expectToolError(tool('agent_cancel', { session: id, turn }), /^Turn not found$/)
      await expectToolError(
        tool('agent_start', { agent: mine.name, message: 'Hi', session: id }),
        /^Session not found$/,
      )
    }
    expect((await listTurns(api, session)).map(({ status }) => status)).toEqual(['active'])
    await call(api, 'POST', `/v1/sessions/${session}/cancel`)
  })

  it('without messages is idle', async () => {
    const { body } = await call(api, 'POST', '/v1/sessions', {})
    const { tool } = await connectToFace(api)
    for (const name of ['agent_get', 'agent_cancel']) {
      const { structuredContent } = await tool(name, { session: body.id })
      expect(structuredContent).toEqual({ session: body.id, status: 'idle', pending: [] })
    }
  })
})

describe('an Idempotency-Key', () => {
  it('lets a repeated start begin one session and one turn', async () => {
    const own = await newOrganization()
    const { name } = await createScriptedAgent(own, [{ text: 'Once.' }, { text: 'Twice.' }])
    const face = await connectToFace(own, { headers: { 'Idempotency-Key': 'start-1' } })
    const [first, again] = [await start(face, name), await start(face, name, { wait_seconds: 1 })]
    expect(first).toMatchObject({ status: 'completed', text: 'Once.' })
    expect(again).toEqual(first)
    expect([await countRows(own, 'sessions'), await countRows(own, 'turns')]).toEqual([1, 1])
    await expectToolError(face.tool('agent_start', { agent: name, message: 'Other' }), /different request/)
    const next = await connectToFace(own, { headers: { 'Idempotency-Key': 'send-1' } })
    const send = () => next.tool('agent_send', { session: first.session, message: 'More' })
    expect((await send()).structuredContent).toMatchObject({ text: 'Twice.' })
    expect((await send()).structuredContent).toMatchObject({ text: 'Twice.' })
    expect(await countRows(own, 'turns')).toBe(2)
  })
})
