import { describeAgents, offerAgents } from '../../../api/faces/mcp/agent-enum.ts'
import { askForConsent, decide, readConsents, readState, writeState } from '../../../api/faces/mcp/consent.ts'
import { presentAnswer, toResult } from '../../../api/faces/mcp/present.ts'
import { createProgress, wordsOf } from '../../../api/faces/mcp/progress.ts'
import { asUuid } from '../../../domain/kit/ids.ts'

const UUID = '01933b5a-0000-7000-8000-000000000001'
const named = (name: string, last: number, description: string | null = null) => ({
  id: `01933b5a-0000-7000-8000-00000000000${last}`,
  name,
  description,
})

describe('agents in an enum', () => {
  it('have their name, or their id where the name does not select one', () => {
    const long = 'x'.repeat(201)
    const offered = offerAgents([named('A', 1), named('B', 2, 'two\n lines'), named('A', 3, 'other'), named(long, 4)])
    const idOf = (last: number) => `agent_01933b5a00007000800000000000000${last}`
    expect(offered.map(({ label }) => label)).toEqual([idOf(1), 'B', idOf(3), idOf(4)])
    expect(offered.slice(0, 3).map(({ about }) => about)).toEqual(['A', 'two lines', 'A: other'])
    expect(offered[3]?.about).toBe(`${'x'.repeat(119)}…`)
  })

  it('are described in one line each, of limited length', () => {
    const text = describeAgents(offerAgents([named('A\nB', 1, 'y'.repeat(300)), named('C', 2)]))
    expect(text).toBe(`Agents:\n- A B: ${'y'.repeat(119)}…\n- C`)
    expect(describeAgents([])).toBe('There are no agents yet.')
  })
})

describe('the consent of a user', () => {
  const pending = [
    { id: 'a', name: 'delete', kind: 'approval' as const, arguments: { file: 'x' } },
    { id: 'b', name: 'ask', kind: 'client_tool' as const, arguments: {} },
    { id: '__proto__', name: 'delete', kind: 'approval' as const, arguments: {} },
  ]

  it('is asked for approvals only, once each, with all arguments', () => {
    const forms = askForConsent(pending, [])
    expect(Object.keys(forms ?? {})).toEqual(['a', '__proto__'])
    expect(forms?.a).toMatchObject({ params: { message: 'May the agent call delete?\n\n{\n  "file": "x"\n}' } })
    expect(Object.keys(askForConsent(pending, ['a']) ?? {})).toEqual(['__proto__'])
    expect(askForConsent(pending, ['a', '__proto__'])).toBeUndefined()
    const large = [{ id: 'a', name: 'delete', kind: 'approval' as const, arguments: { file: 'x'.repeat(4000) } }]
    expect(askForConsent(large, [])).toBeUndefined()
  })

  it.each([
    [{ action: 'accept', content: { approved: true, reason: 'fine' } }, { result: { approved: true } }],
    [{ action: 'accept', content: { approved: false } }, { result: { approved: false } }],
    [{ action: 'accept', content: { approved: false, reason: ' ' } }, { result: { approved: false } }],
    [
      { action: 'accept', content: { approved: false, reason: 'no' } },
      { error: 'The user did not approve this call: no' },
    ],
    [{ action: 'decline', content: { approved: true } }, { result: { approved: false } }],
    [{ action: 'cancel', content: { approved: true } }, undefined],
    [{ action: 'accept' }, undefined],
    [{ action: 'accept', content: { approved: 'true' } }, undefined],
    [{ action: 'rule', content: { approved: true } }, undefined],
    ['accept', undefined],
    [null, undefined],
  ])('is read from %j as %j', (response, result) => {
    const expected = result === undefined ? [] : [{ tool_call_id: 'a', ...result }]
    expect(readConsents(pending, { a: response })).toEqual(expected)
  })

  it('counts for pending approvals only', () => {
    const yes = { action: 'accept', content: { approved: true } }
    expect(readConsents(pending, { b: yes, other: yes })).toEqual([])
  })

  it('is refused with a reason of limited length', () => {
    const { error } = decide({ call_id: 'a', approved: false, reason: 'x'.repeat(5000) })
    expect(error).toBe(`The user did not approve this call: ${'x'.repeat(2000)}`)
  })

  it('comes back with a state that names the turn, and nothing else', () => {
    const place = { session: asUuid<'session'>(UUID), turn: asUuid<'turn'>(UUID) }
    expect(readState(writeState(place))).toEqual(place)
    const forge = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const state of ['', '{}', forge({}), forge(null), forge({ session: UUID, turn: UUID })]) {
      expect(() => readState(state)).toThrow(/./)
    }
  })
})

describe('progress', () => {
  it('says what events mean', () => {
    const line = (data: object) => JSON.stringify({ data })
    expect(wordsOf({ type: 'reason.started', line: line({}) })).toBe('thinking')
    const call = { tool_call: { name: 'bash' } }
    expect(wordsOf({ type: 'tool.started', line: line({ ...call, display_name: null }) })).toBe('running bash')
    expect(wordsOf({ type: 'tool.started', line: line({ ...call, display_name: 'Bash' }) })).toBe('running Bash')
    expect(wordsOf({ type: 'turn.completed', line: line({}) })).toBeUndefined()
  })

  it('is sent at once and then at intervals, the newest, and not after its end', async () => {
    const sent: [number, string][] = []
    const progress = createProgress((...news) => sent.push(news), 200)
    for (const words of ['a', 'b', 'c']) progress.report(words)
    expect(sent).toEqual([[1, 'a']])
    while (sent.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(sent[1]).toEqual([3, 'c'])
    progress.report('d')
    progress.end()
    await new Promise((resolve) => setTimeout(resolve, 220))
    expect(sent).toHaveLength(2)
  })
})

describe('an answer in words', () => {
  const turn = { id: 'turn_1', session_id: 'session_1', pending_tool_calls: [], error: null }
  const wordsFor = (more: object, text?: string) => {
    const output = text === undefined ? null : { content: [{ type: 'text', text }] }
    // Only these fields of a turn and a message are read.
    const answer = presentAnswer({ turn: { ...turn, ...more }, output } as unknown as Parameters<
      typeof presentAnswer
    >[0])
    return toResult(answer).content.map((part) => (part.type === 'text' ? part.text : part.type))
  }

  it.each([
    [{ status: 'queued' }, undefined, /earlier turns.*agent_get/],
    [{ status: 'active' }, 'One moment.', /^One moment\.\nThe agent is still working.*agent_get/],
    [{ status: 'completed' }, 'Done.', /^Done\.$/],
    [{ status: 'completed' }, undefined, /without a text/],
    [{ status: 'failed', error: 'No model.' }, undefined, /^The turn has failed: No model\.$/],
    [{ status: 'cancelled' }, 'Half', /^Half\nThe turn was cancelled\.$/],
  ])('says about %j with the text %j: %s', (more, text, expected) => {
    const words = wordsFor(more, text)
    expect(words.slice(0, -1).join('\n')).toMatch(expected)
    expect(words.at(-1)).toBe(`session: session_1\nturn: turn_1\nstatus: ${more.status}`)
  })

  it('names the calls that wait', () => {
    const pending_tool_calls = [
      { id: 'a', name: 'delete', kind: 'approval', arguments: { file: 'x' } },
      { id: 'b', name: 'ask', kind: 'client_tool', arguments: {} },
    ]
    const [words] = wordsFor({ status: 'waiting', pending_tool_calls })
    expect(words).toContain('- approval of delete, call_id "a", arguments {"file":"x"}\n')
    expect(words).toContain('- the result of ask, call_id "b", arguments {}')
  })
})
