import { call } from '../../support/http.ts'
import { callsOf } from '../../support/turns.ts'
import { sessionOf } from './checks.ts'
import { lastOf, partsOf, settled, textOf, toolParts } from './page.ts'
import type { Scenario } from './scenario.ts'
import { GUARDED, type Stage } from './stage.ts'
import type { Part } from './versions.ts'

const ASK = { tool_calls: [{ name: 'ask_user', arguments: { question: 'Which colour?' } }] }
const BOTH = {
  text: 'Two questions. ',
  tool_calls: [
    { name: 'ask_user', arguments: { question: 'Which?' } },
    { name: 'look_around', arguments: {} },
  ],
}
const GUARDED_CALL = { text: 'May I? ', tool_calls: [{ name: GUARDED, arguments: { text: 'precious' } }] }

const toolOf = (part: Part): string => part.toolName ?? part.type.replace('tool-', '')

/** Answers each call of the page's tools that is open, and waits for the rest of the turn. */
async function answerAll(stage: Stage, outputs: object[]): Promise<void> {
  const waiting = toolParts(lastOf(stage.chat)).filter(
    ({ state, providerExecuted }) => state === 'input-available' && !providerExecuted,
  )
  for (const [index, part] of waiting.entries()) {
    const toolCallId = part.toolCallId ?? ''
    await stage.chat.addToolOutput({ tool: toolOf(part), toolCallId, ...outputs[index] })
  }
  await settled(stage.chat)
}

/** Decides about the calls that wait for approval: by the page, or, where its version knows none, over REST. */
async function decide(stage: Stage, ...decisions: boolean[]): Promise<void> {
  const { chat, version, target, place } = stage
  if (version.major === 5) {
    const asked = partsOf(lastOf(chat), 'data-approval').map(({ data }) => data as { toolCallId: string })
    expect(asked).toMatchObject(decisions.map(() => ({ toolName: GUARDED, input: { text: 'precious' } })))
    const tool_results = asked.map(({ toolCallId }, index) => ({
      tool_call_id: toolCallId,
      result: { approved: decisions[index] },
    }))
    const session = await sessionOf(target, place.agentId)
    expect((await call(target, 'POST', `/v1/sessions/${session}/tool-results`, { tool_results })).status).toBe(200)
    await stage.reload()
    return
  }
  const asked = toolParts(lastOf(chat)).filter(({ state }) => state === 'approval-requested')
  expect(asked).toMatchObject(decisions.map(() => ({ input: { text: 'precious' } })))
  for (const [index, approved] of decisions.entries())
    await chat.addToolApprovalResponse?.({ id: asked[index]?.approval?.id ?? '', approved: approved })
  await settled(chat)
}

const expectAsked = async (stage: Stage) => expect((await stage.lastTurn()).status).toBe('waiting')
const newestTools = (stage: Stage): Part[] => toolParts(lastOf(stage.chat))

/** Scenarios in which the service waits for the page. */
export const askingScenarios: Scenario[] = [
  {
    name: 'a tool of the page that runs by itself',
    steps: [ASK, { text: 'Blue, then.' }],
    play: async (stage) => {
      stage.reopen({ ask_user: () => ({ colour: 'blue' }) })
      const before = stage.posts()
      const answer = await stage.say('Paint')
      expect(toolParts(answer)).toMatchObject([{ state: 'output-available', output: { colour: 'blue' } }])
      expect(textOf(answer)).toBe('Blue, then.')
      expect(stage.posts()).toBe(before + 2)
      expect(JSON.stringify((await stage.lastTurn()).results)).toContain('blue')
    },
  },
  {
    name: 'two tools of the page at once, and one fails',
    steps: [BOTH, { text: 'Thanks.' }],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Ask two things')
      await expectAsked(stage)
      const before = stage.posts()
      await answerAll(stage, [{ output: 'This.' }, { state: 'output-error', errorText: 'It is dark.' }])
      expect(newestTools(stage)).toMatchObject([
        { state: 'output-available', output: 'This.' },
        { state: 'output-error', errorText: 'It is dark.' },
      ])
      expect(textOf(lastOf(stage.chat))).toBe('Two questions. Thanks.')
      expect(stage.posts()).toBe(before + 1)
      expect(JSON.stringify((await stage.lastTurn()).results)).toMatch(/This\..*It is dark/)
    },
  },
  {
    name: "a tool of the page beside one of the service's",
    steps: [
      { tool_calls: [{ name: 'repeat', arguments: { text: 'a', times: 2 } }, ...ASK.tool_calls] },
      { text: 'Both are there.' },
    ],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Do both')
      await expectAsked(stage)
      await answerAll(stage, [{ output: 'red' }])
      expect(newestTools(stage)).toMatchObject([{ providerExecuted: true }, { output: 'red' }])
      expect(textOf(lastOf(stage.chat))).toBe('Both are there.')
    },
  },
  {
    name: 'a tool of the page that is asked twice in a turn',
    steps: [ASK, { text: 'Sure? ', ...ASK }, { text: 'Fine.' }],
    play: async (stage) => {
      let colour = 0
      stage.reopen({ ask_user: () => `colour ${++colour}` })
      const before = stage.posts()
      const answer = await stage.say('Ask twice')
      expect(toolParts(answer).map(({ output }) => output)).toEqual(['colour 1', 'colour 2'])
      expect(textOf(answer)).toBe('Sure? Fine.')
      expect(stage.posts()).toBe(before + 3)
    },
  },
  {
    name: 'a page that is loaded anew while its tool is asked',
    steps: [ASK, { text: 'Green, then.' }],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Paint')
      await stage.reload()
      expect(newestTools(stage)).toMatchObject([{ state: 'input-available', input: { question: 'Which colour?' } }])
      await answerAll(stage, [{ output: 'green' }])
      expect(textOf(lastOf(stage.chat))).toBe('Green, then.')
    },
  },
  {
    name: 'a message instead of the output that the page is asked for',
    steps: [ASK, { text: 'Never mind.' }],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Paint')
      expect(textOf(await stage.say('Forget it'))).toBe('Never mind.')
      const [asking, answered] = (await stage.turns()).slice(-2)
      expect([asking?.status, answered?.status]).toEqual(['cancelled', 'completed'])
      await stage.reload()
    },
  },
  {
    name: 'an output for a call that was answered before, and for a call of nobody',
    steps: [ASK, { text: 'Once only.' }],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Paint')
      await answerAll(stage, [{ output: 'black' }])
      const results = JSON.stringify((await stage.lastTurn()).results)
      const [part] = newestTools(stage)
      const forged = structuredClone(stage.chat.messages)
      forged.at(-1)?.parts.push({ ...part, type: part?.type ?? '', toolCallId: 'never-asked' })
      stage.chat.messages = forged
      await stage.chat.addToolOutput({ tool: 'ask_user', toolCallId: part?.toolCallId ?? '', output: 'white' })
      await settled(stage.chat)
      expect(JSON.stringify((await stage.lastTurn()).results)).toBe(results)
      await stage.reload()
    },
  },
  {
    name: 'an approval that is given',
    steps: [GUARDED_CALL, { text: 'It has run.' }],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Do it')
      await expectAsked(stage)
      await decide(stage, true)
      expect(newestTools(stage)).toMatchObject([{ state: 'output-available' }])
      expect(JSON.stringify(newestTools(stage)[0]?.output)).toContain('precious')
      expect(textOf(lastOf(stage.chat))).toBe('May I? It has run.')
    },
  },
  {
    name: 'an approval that is refused',
    steps: [GUARDED_CALL, { text: 'It has not run.' }],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Do it')
      await decide(stage, false)
      expect(newestTools(stage)[0]?.state).toMatch(/^output-(denied|error)$/)
      expect(textOf(lastOf(stage.chat))).toBe('May I? It has not run.')
      expect((await stage.lastTurn()).results).toMatchObject([{ error: expect.any(String) }])
    },
  },
  {
    name: 'two approvals at once, one given and one refused, after the page was loaded anew',
    steps: [{ tool_calls: [...GUARDED_CALL.tool_calls, ...GUARDED_CALL.tool_calls] }, { text: 'One has run.' }],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Do both')
      await stage.reload()
      await decide(stage, true, false)
      expect(newestTools(stage).map(({ state }) => state)).toEqual([
        'output-available',
        expect.stringMatching(/^output-(denied|error)$/),
      ])
      expect(textOf(lastOf(stage.chat))).toBe('One has run.')
    },
  },
  {
    name: 'an approval beside a tool of the page',
    steps: [{ tool_calls: [...GUARDED_CALL.tool_calls, ...callsOf('look_around')] }, { text: 'All is known.' }],
    play: async (stage) => {
      stage.reopen()
      await stage.say('Do both')
      await answerAll(stage, [{ output: 'a room' }])
      await decide(stage, true)
      expect(newestTools(stage)).toMatchObject([{ state: 'output-available' }, { output: 'a room' }])
      expect(textOf(lastOf(stage.chat))).toBe('All is known.')
    },
  },
]
