import { call, createScriptedSession, type Json, textMessage, waitUntilIdle } from '../support/http.ts'
import type { LabRun } from '../support/lab.ts'
import { answerOf, compactTypes, expectSoundRecord, turnsOf } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

type ScriptedCall = { id?: string; name: string; arguments: object | string }

/** Runs a session whose model makes these calls and then answers. Returns its record. */
async function runCalls(calls: ScriptedCall[], more: object = {}): Promise<{ id: string; events: Json[] }> {
  const steps = [{ text: 'Let me see.', tool_calls: calls }, { text: 'done' }]
  const id = await createScriptedSession(api, steps, { capabilities: [{ ref: 'lab' }], ...more })
  await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  const events = await waitUntilIdle(api, id)
  expectSoundRecord(events)
  expect(answerOf(events)).toBe('Let me see.')
  expect(events.find((event) => event.type === 'turn.completed').data.iterations).toBe(2)
  return { id, events }
}

const completedCalls = (events: Json[]): Json[] =>
  events.filter((event) => event.type === 'tool.completed').map((event) => event.data)

const resultOf = async (name: string, args: object | string = {}): Promise<Json> => {
  const { events } = await runCalls([{ name, arguments: args }])
  return completedCalls(events)[0]
}

const parsed = (result: Json): Json => JSON.parse(result.result[0].text)
const runsOf = async (callId: string): Promise<LabRun[]> => (await api.labRuns()).filter((run) => run.callId === callId)

describe('a turn whose model calls tools', () => {
  it('runs them in parallel, records everything once and in order, and calls the model again', async () => {
    // Each run ends when all have started.
    const meets = ['a', 'b', 'c'].map((id) => ({ id, name: 'meet', arguments: { times: 3 } }))
    const { events } = await runCalls(meets)
    expect(compactTypes(events).filter((type) => !type.startsWith('tool.'))).toEqual([
      ...['input.message', 'session.started', 'session.activated', 'turn.started'],
      ...['reason.started', 'output.message.started', 'output.message.delta', 'llm.generation'],
      ...['output.message.completed', 'reason.completed', 'act.started', 'act.completed'],
      ...['reason.started', 'output.message.started', 'output.message.delta', 'llm.generation'],
      ...['output.message.completed', 'reason.completed', 'turn.completed', 'session.idled'],
    ])
    const acting = events.filter((event) => /^(act|tool)\./.test(event.type))
    expect(acting.map((event) => event.type)).toEqual([
      'act.started',
      ...Array(3).fill('tool.started'),
      ...Array(3).fill('tool.completed'),
      'act.completed',
    ])
    expect(acting[0].data.tool_calls).toEqual(
      ['a', 'b', 'c'].map((id) => ({ id, name: 'meet', display_name: 'The meet tool', policy: 'auto' })),
    )
    expect(acting.at(-1).data).toMatchObject({ completed: true, success_count: 3, error_count: 0 })
  })

  it('gives the model each result, whose message says whose call it answers', async () => {
    const { id, events } = await runCalls([
      { id: 'one', name: 'echo', arguments: { text: 'a "quoted" ü' } },
      { id: 'two', name: 'fail', arguments: { text: 'why' } },
    ])
    const [, second] = events.filter((event) => event.type === 'llm.generation')
    expect(second.data.messages.map((message: Json) => message.role)).toEqual([
      ...['user', 'agent', 'tool_result', 'tool_result'],
    ])
    const parts = second.data.messages.slice(2).map((message: Json) => message.content[0])
    expect(parts).toEqual(
      expect.arrayContaining([
        { type: 'tool_result', tool_call_id: 'one', result: { text: 'a "quoted" ü' }, error: null },
        { type: 'tool_result', tool_call_id: 'two', result: null, error: 'failed as asked: why' },
      ]),
    )
    const { body } = await call(api, 'GET', `/v1/sessions/${id}/messages`)
    expect(body.data.map((message: Json) => message.role)).toEqual([
      ...['user', 'agent', 'tool_result', 'tool_result', 'agent'],
    ])
  })

  it('links each event to the span it belongs to', async () => {
    const { events } = await runCalls([{ name: 'echo', arguments: {} }])
    const [turn] = turnsOf(events)
    const span = (type: string, nth = 0): Json => events.filter((event) => event.type === type)[nth].context
    for (const type of ['turn.started', 'turn.completed']) {
      expect(span(type).span_id).toBe(span('reason.started').parent_span_id)
      expect(span(type)).not.toHaveProperty('parent_span_id')
    }
    expect(span('act.started').parent_span_id).toBe(span('reason.started').parent_span_id)
    expect(span('tool.started').parent_span_id).toBe(span('act.started').span_id)
    expect(span('tool.completed').span_id).toBe(span('tool.started').span_id)
    expect(span('act.completed').span_id).toBe(span('act.started').span_id)
    expect(span('reason.started', 1).span_id).not.toBe(span('reason.started', 0).span_id)
    for (const type of ['act.started', 'tool.started', 'tool.completed', 'act.completed']) {
      expect(span(type)).toMatchObject({ turn_id: turn, trace_id: turn, exec_id: expect.stringMatching(/^exec_/) })
    }
  })

  it('gives the tool the same call id as the model', async () => {
    const id = `unique-${Date.now()}`
    await runCalls([{ id, name: 'echo', arguments: { text: 'x' } }])
    const expected = { tool: 'echo', args: { text: 'x' }, callId: id, mayHaveRun: false, aborted: false }
    expect(await runsOf(id)).toEqual([{ ...expected, organizationId: api.uuid, turnId: expect.any(String) }])
  })

  it('offers the tools and the prompt of its capabilities', async () => {
    const { events } = await runCalls([{ name: 'echo', arguments: {} }])
    const [generation] = events.filter((event) => event.type === 'llm.generation')
    expect(generation.data.tools).toEqual(
      expect.arrayContaining([{ name: 'echo', description: 'Does echo.', display_name: 'The echo tool' }]),
    )
  })
})

describe('a tool that reports progress', () => {
  it('has the newest of its reports recorded about ten times a second, however many it makes', async () => {
    const { events } = await runCalls([{ id: 'a', name: 'report', arguments: { ms: 1000, times: 1000 } }])
    const [completed] = completedCalls(events)
    // All of them in a process that is not busy.
    expect(JSON.parse(completed.result[0].text)).toBeGreaterThan(100)
    const reports = events.filter(({ type }) => type === 'tool.progress')
    const [first, ...others] = reports.map(({ data }) => data)
    const turn_id = events.find(({ type }) => type === 'turn.started').data.turn_id
    expect(first).toEqual({ turn_id, tool_call_id: 'a', progress: 0, total: 1000, message: 'begun' })
    expect(others.length).toBeGreaterThan(2)
    expect(others.length).toBeLessThan(1000 / 100 + 5)
    const counts = others.map(({ progress }) => progress)
    expect(counts).toEqual(counts.toSorted((one: number, other: number) => one - other))
    const places = (type: string) => events.filter((event) => event.type === type).map(({ sequence }) => sequence)
    expect(Math.max(...places('tool.progress'))).toBeLessThan(places('tool.completed')[0])
    const [{ context }] = events.filter(({ type }) => type === 'tool.started')
    for (const report of reports) expect(report.context).toEqual(context)
  })

  it('is streamed as it goes, and can be left out', async () => {
    const { id, events } = await runCalls([{ name: 'report', arguments: {} }])
    const list = async (query: string) => (await call(api, 'GET', `/v1/sessions/${id}/events?${query}`)).body.data
    expect(await list('types=tool.progress')).toEqual(events.filter(({ type }) => type === 'tool.progress'))
    expect((await list('exclude=tool.progress')).length).toBe(events.length - 1)
  })
})

describe('a tool with an image', () => {
  it('gives it back after its text, to the model as well', async () => {
    const { events } = await runCalls([{ id: 'draw', name: 'picture', arguments: {} }])
    const image = { type: 'image', base64: 'iVBORw0KGgo=', media_type: 'image/png' }
    expect(completedCalls(events)[0].result).toEqual([{ type: 'text', text: '"see the image"' }, image])
    const [, second] = events.filter((event) => event.type === 'llm.generation')
    expect(second.data.messages.at(-1).content).toEqual([
      { type: 'tool_result', tool_call_id: 'draw', result: 'see the image', error: null },
      { ...image, base64: null },
    ])
  })
})

describe('the images of a result', () => {
  it.each([
    ['10 images', { times: 10 }, 10, undefined],
    ['more images than 10', { times: 12 }, 10, 'Left out: 2 images.'],
    ['images of almost 4 MiB together', { times: 3, kib: 1365 }, 3, undefined],
    ['images of more than 4 MiB together', { times: 4, kib: 1365 }, 3, 'Left out: 1 image.'],
    ['an image of more than 4 MiB', { kib: 4096 }, 0, 'Left out: 1 image.'],
  ])('are recorded and given to the model within limits: %s', async (_what, args, kept, notice) => {
    const { events } = await runCalls([{ id: 'draw', name: 'picture', arguments: args }])
    const [, ...parts] = completedCalls(events)[0].result
    const [, second] = events.filter((event) => event.type === 'llm.generation')
    for (const given of [parts, second.data.messages.at(-1).content.slice(1)]) {
      expect(given.filter((part: Json) => part.type === 'image')).toHaveLength(kept)
      expect(given.slice(kept)).toEqual(
        notice
          ? [{ type: 'text', text: `[${notice} A result has at most 10 images, of 4194304 bytes together.]` }]
          : [],
      )
    }
  })
})

describe('a tool that misbehaves never fails the turn', () => {
  it('a failure goes back to the model', async () => {
    expect(await resultOf('fail', { text: 'x' })).toMatchObject({
      status: 'error',
      success: false,
      tool_name: 'fail',
      error: 'failed as asked: x',
    })
  })

  it('a crash is reported in general words', async () => {
    const result = await resultOf('crash')
    expect(result).toMatchObject({ status: 'error', error: expect.stringContaining('error in the service') })
    expect(JSON.stringify(result)).not.toContain('SECRET-INNER-CAUSE')
  })

  it('a tool that hangs is stopped when its time is over', async () => {
    expect(await resultOf('hang')).toMatchObject({ status: 'timeout', error: expect.stringContaining('1 s') })
    expect((await api.labRuns()).findLast((run) => run.tool === 'hang')?.aborted).toBe(true)
  })

  it('a tool that ignores its signal is abandoned', async () => {
    expect(await resultOf('deaf')).toMatchObject({ status: 'timeout' })
  })

  it('a result that is too large is an error', async () => {
    expect(await resultOf('flood')).toMatchObject({ status: 'error', error: expect.stringContaining('2097154 bytes') })
  })

  it('a result that Postgres cannot store is repaired', async () => {
    expect(parsed(await resultOf('nul'))).toEqual({ text: 'a\ufffdb\ufffdc', '\ufffdkey': 1 })
  })
})

describe('a model that calls tools wrongly', () => {
  it('is told which tools there are when it calls an unknown one', async () => {
    const result = await resultOf('no such\0tool', {})
    expect(result).toMatchObject({ status: 'error', tool_name: 'no such\ufffdtool' })
    expect(result.error).toMatch(/There is no tool .* The tools are: echo, .*once/)
  })

  it('is told so when the arguments are not JSON', async () => {
    expect(await resultOf('echo', '{"text": ')).toMatchObject({ error: expect.stringContaining('not JSON') })
  })

  it('is told so when the arguments are not what the schema says', async () => {
    expect(await resultOf('echo', { text: 5 })).toMatchObject({
      status: 'error',
      error: expect.stringContaining('text'),
    })
  })

  it('may make 128 calls at once; an answer with more is malformed', async () => {
    const callsOf = (length: number) =>
      Array.from({ length }, (_, index) => ({ name: 'echo', arguments: { text: `${index}` } }))
    const results = completedCalls((await runCalls(callsOf(128))).events)
    expect(results.filter(({ success }) => success)).toHaveLength(128)
    const id = await createScriptedSession(api, [{ tool_calls: callsOf(129) }], { capabilities: [{ ref: 'lab' }] })
    await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
    const events = await waitUntilIdle(api, id)
    expect(completedCalls(events)).toEqual([])
    const tooMany = { error_code: 'too_many_tool_calls', error: 'The answer of the model calls more than 128 tools.' }
    expect(events.at(-2)).toMatchObject({ type: 'turn.failed', data: tooMany })
  })

  it('repeats an id or uses invalid ones: each call gets a unique id', async () => {
    const ids = ['same', 'same', 'x'.repeat(500), 'ü', ' ']
    const { events } = await runCalls(ids.map((id) => ({ id, name: 'echo', arguments: { text: id } })))
    const results = completedCalls(events)
    expect(new Set(results.map(({ tool_call_id }) => tool_call_id)).size).toBe(ids.length)
    expect(results.map((result) => parsed(result).text).sort()).toEqual([...ids].sort())
    expect(results.map(({ tool_call_id }) => tool_call_id)).toContain('same')
  })

  it('has arguments with what Postgres cannot store', async () => {
    expect(parsed(await resultOf('echo', { text: 'a\0b' }))).toEqual({ text: 'a\ufffdb' })
  })
})

describe('an agent whose capability has gone', () => {
  it('goes on without its tools', async () => {
    const steps = [{ tool_calls: [{ name: 'echo', arguments: {} }] }, { text: 'done' }]
    const id = await createScriptedSession(api, steps, { capabilities: [{ ref: 'lab' }] })
    const gone = JSON.stringify([{ ref: 'gone' }, { ref: 'mcp:gone' }])
    await api.query('UPDATE agents SET capabilities = $1 WHERE organization_id = $2', [gone, api.uuid])
    await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
    const events = await waitUntilIdle(api, id)
    expect(completedCalls(events)[0].error).toContain('There are no tools.')
    expect(events.at(-2).type).toBe('turn.completed')
  })
})
