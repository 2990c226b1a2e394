import type { ContentPart, Message } from '../../../contract/messages.ts'
import { applyCompaction, patchDanglingCalls, planCompaction } from '../../../domain/conversation/compaction.ts'
import { toId } from '../../../domain/kit/ids.ts'
import { estimateInputTokens, estimateMessageTokens } from '../../../domain/models/llm/token-estimate.ts'
import { countOf } from '../../support/counts.ts'
import { createRandom } from '../../support/random.ts'
import { seedsOf } from '../../support/seeds.ts'

const message = (sequence: number, role: Message['role'], content: ContentPart[]): Message => ({
  id: toId('message', `${String(sequence).padStart(8, '0')}-0000-7000-8000-000000000000`),
  session_id: toId('session', '00000000-0000-7000-8000-000000000000'),
  sequence,
  role,
  content,
  created_at: new Date(Date.UTC(2026, 0, 1) + sequence).toISOString(),
})
const text = (words: string): ContentPart => ({ type: 'text', text: words })
const call = (id: string): ContentPart => ({ type: 'tool_call', id, name: 'look_up', arguments: { id } })
const result = (id: string, value: unknown = 'found'): ContentPart => ({
  type: 'tool_result',
  tool_call_id: id,
  result: value,
})
const cancelled = (id: string) => [{ type: 'tool_result', tool_call_id: id, result: null, error: 'cancelled' }]
const callIds = ({ content }: Message) => content.flatMap((part) => (part.type === 'tool_call' ? [part.id] : []))
const resultIds = ({ content }: Message) =>
  content.flatMap((part) => (part.type === 'tool_result' ? [part.tool_call_id] : []))
const estimate = (messages: Message[], fixedTokens = 0) =>
  messages.reduce((sum, each) => sum + estimateMessageTokens(each), fixedTokens)
const imageFile: ContentPart = { type: 'image_file', image_id: 'image' }

describe('a conversation with secrets', () => {
  const masked = (id: string) => message(Number(id), 'tool_result', [result(id, { value: '[secret]' })])
  const messages = [
    message(1, 'user', [text('Hi')]),
    message(2, 'agent', [call('3')]),
    masked('3'),
    message(4, 'agent', [call('5')]),
    masked('5'),
    message(6, 'agent', [text('done')]),
    message(7, 'user', [text('Well?')]),
  ]
  const results = (given: Message[]) =>
    given.flatMap(({ content }) => content.flatMap((part) => (part.type === 'tool_result' ? [part.result] : [])))

  it('is cut by the size that the model receives, even where only the masks are visible', () => {
    const hiddenTokens = ({ sequence }: Message) => (sequence === 3 || sequence === 5 ? 500 : 0)
    const plan = planCompaction(messages, { fixedTokens: 0, contextTokens: 1000, hiddenTokens })
    expect(plan?.inputTokensBefore).toBe(estimate(messages) + 1000)
    const cut = applyCompaction(messages, plan ?? { clearedBefore: 0, droppedBefore: 0 })
    expect(results(cut)).toEqual([expect.stringContaining('removed'), { value: '[secret]' }])
    expect(plan?.inputTokensAfter).toBe(estimate(cut) + 500)
    expect(planCompaction(messages, { fixedTokens: 0, contextTokens: 1000 })).toBeUndefined()
  })

  it('is not cut where that would make it longer', () => {
    expect(planCompaction(messages.slice(0, -1), { fixedTokens: 200, contextTokens: 200 })).toBeUndefined()
  })
})

describe('a call without a result', () => {
  const asked = [message(1, 'user', [text('Hi')]), message(2, 'agent', [call('a'), call('b')])]

  it('is answered as cancelled, before the next message', () => {
    const patched = patchDanglingCalls([...asked, message(3, 'user', [text('Well?')])])
    expect(patched.map(({ role }) => role)).toEqual(['user', 'agent', 'tool_result', 'tool_result', 'user'])
    expect(patched.slice(2, 4).map(({ content }) => content)).toEqual([cancelled('a'), cancelled('b')])
    expect(patched[2]).toMatchObject({ sequence: 2, created_at: asked[1]?.created_at })
    expect(new Set(patched.map(({ id }) => id)).size).toBe(5)
    expect(patched[2]?.id).toMatch(/^message_[0-9a-f]{32}$/)
    expect(patchDanglingCalls(patched)).toEqual(patched)
  })

  it('is answered also at the end, and beside calls that have their results, in any order', () => {
    const patched = patchDanglingCalls([...asked, message(3, 'tool_result', [result('b')])])
    expect(patched.slice(2).map(({ content }) => content)).toEqual([[result('b')], cancelled('a')])
    const whole = [...asked, message(3, 'tool_result', [result('b')]), message(4, 'tool_result', [result('a')])]
    expect(patchDanglingCalls(whole)).toEqual(whole)
  })

  it('is not answered by the result of a call of the same id in another message', () => {
    const again = [
      message(1, 'agent', [call('call_0')]),
      message(2, 'tool_result', [result('call_0', 1)]),
      message(3, 'agent', [call('call_0')]),
      message(4, 'agent', [call('call_0')]),
      message(5, 'tool_result', [result('call_0', 3)]),
    ]
    const patched = patchDanglingCalls(again)
    expect(patched.map(({ content }) => content)).toEqual([
      ...again.slice(0, 3).map(({ content }) => content),
      cancelled('call_0'),
      ...again.slice(3).map(({ content }) => content),
    ])
    expect(new Set(patched.map(({ id }) => id)).size).toBe(6)
  })
})

describe('a result without a call', () => {
  it('is left out, as are late and duplicate ones', () => {
    const patched = patchDanglingCalls([
      message(1, 'tool_result', [result('x')]),
      message(2, 'agent', [call('a')]),
      message(3, 'tool_result', [result('a', 1), result('y')]),
      message(4, 'tool_result', [result('a', 2)]),
      message(5, 'user', [text('Hi')]),
      message(6, 'tool_result', [result('a', 3)]),
    ])
    expect(patched.map(({ sequence }) => sequence)).toEqual([2, 3, 5])
    expect(patched[1]?.content).toEqual([result('a', 1)])
  })
})

/** Returns exchanges with one tool call each. A result is about 250 tokens. */
const exchanges = (count: number) =>
  Array.from({ length: count }, (_, index) => [
    message(index * 4 + 1, 'user', [text('What is there?')]),
    message(index * 4 + 2, 'agent', [call('a')]),
    message(index * 4 + 3, 'tool_result', [result('a', 'x'.repeat(1000)), imageFile]),
    message(index * 4 + 4, 'agent', [text('It is there.')]),
  ]).flat()

describe('a conversation that is too long', () => {
  it('is left as it is while it fits', () => {
    const messages = exchanges(3)
    expect(planCompaction(messages, { fixedTokens: 0, contextTokens: estimate(messages) * 1.25 + 2 })).toBeUndefined()
    expect(applyCompaction(messages, { clearedBefore: 0, droppedBefore: 0 })).toEqual(messages)
  })

  it('first loses the content of the oldest results', () => {
    const messages = exchanges(3)
    const plan = planCompaction(messages, { fixedTokens: 100, contextTokens: estimate(messages, 100) })
    expect(plan).toMatchObject({ clearedBefore: 4, droppedBefore: 0, inputTokensBefore: estimate(messages, 100) })
    const compacted = applyCompaction(messages, plan ?? fail())
    expect(estimate(compacted, 100)).toBe(plan?.inputTokensAfter)
    expect(compacted[2]?.content).toEqual([result('a', expect.stringMatching(/removed/))])
    expect(compacted.filter((_, index) => index !== 2)).toEqual(messages.filter((_, index) => index !== 2))
  })

  it('then loses its oldest exchanges, with a notice', () => {
    const messages = exchanges(6)
    const plan = planCompaction(messages, { fixedTokens: 0, contextTokens: 250 })
    const compacted = applyCompaction(messages, plan ?? fail())
    const [notice, first] = compacted
    expect(notice).toMatchObject({ role: 'user', content: [text(expect.stringMatching(/left out/))] })
    expect(notice?.sequence).toBe(first?.sequence)
    expect(first).toEqual(messages.find(({ sequence }) => sequence === plan?.droppedBefore))
    expect(first?.role).toBe('user')
    expect(compacted.at(-1)).toEqual(messages.at(-1))
    expect(estimate(compacted)).toBe(plan?.inputTokensAfter)
    // The dropped messages are not needed, and applying the plan again changes nothing.
    const rest = messages.filter(({ sequence }) => (sequence ?? 0) >= (plan?.droppedBefore ?? 0))
    expect(applyCompaction(rest, plan ?? fail())).toEqual(compacted)
    expect(applyCompaction(compacted, plan ?? fail())).toEqual(compacted)
    expect(plan?.inputTokensAfter).toBeLessThanOrEqual(200)
  })

  it('keeps the turn and the results that the model has not seen, whatever their size', () => {
    const messages = [...exchanges(2), ...exchanges(3).slice(8, 11)]
    const plan = planCompaction(messages, { fixedTokens: 0, contextTokens: 10 })
    const compacted = applyCompaction(messages, plan ?? fail())
    expect(compacted.slice(1)).toEqual(messages.slice(8))
    expect(planCompaction(compacted, { fixedTokens: 0, contextTokens: 10 })).toBeUndefined()
    expect(planCompaction(messages.slice(8), { fixedTokens: 0, contextTokens: 10 })).toBeUndefined()
  })

  it('keeps its beginning while it grows a little, because that is cached', () => {
    const plans = Array.from({ length: 100 }, (_, grown) =>
      planCompaction(exchanges(30 + grown), { fixedTokens: 0, contextTokens: 40_000 }),
    )
    const cuts = plans.map((plan) => `${plan?.clearedBefore} ${plan?.droppedBefore}`)
    expect(new Set(cuts).size).toBeLessThan(60)
    expect(cuts.at(-1)).not.toBe(cuts[0])
  })

  it('is cut by position, not by sequence, when a message was queued', () => {
    const queued = [
      message(1, 'user', [text('x'.repeat(4000))]),
      message(3, 'agent', [text('first')]),
      message(2, 'user', [text('queued')]),
      message(4, 'agent', [text('second')]),
    ]
    const plan = planCompaction(queued, { fixedTokens: 0, contextTokens: 200 })
    expect(plan).toMatchObject({ clearedBefore: 0, droppedBefore: 2 })
    expect(applyCompaction(queued, plan ?? fail()).map(({ sequence }) => sequence)).toEqual([2, 2, 4])
  })

  it('is cut in time that grows with its length, not faster', () => {
    const cutMs = (length: number): number => {
      const messages = patchDanglingCalls(exchanges(length))
      const before = process.threadCpuUsage()
      const plan = planCompaction(patchDanglingCalls(messages), { fixedTokens: 0, contextTokens: 128_000 })
      const compacted = applyCompaction(messages, plan ?? fail())
      // CPU time of this thread, so that other load on the machine does not count.
      const { user, system } = process.threadCpuUsage(before)
      expect(estimate(compacted)).toBe(plan?.inputTokensAfter)
      return (user + system) / 1000
    }
    cutMs(1250)
    // Ten times as long. Work for each pair of messages would take a hundred times as long.
    expect(cutMs(12_500)).toBeLessThan(40 * Math.max(1, cutMs(1250)))
  })
})

describe('the estimate', () => {
  it('counts tools, images and writing systems with few characters per token', () => {
    expect(estimateInputTokens('x'.repeat(400), [])).toBe(100)
    expect(estimateInputTokens('汉'.repeat(400), [])).toBe(400)
    const tool = { name: 'look', description: 'Looks.', parameters: { type: 'object' } }
    expect(estimateInputTokens('', [], [tool])).toBe(7)
    expect(estimateInputTokens('', [message(1, 'user', [imageFile])])).toBe(1000)
  })
})

function fail(): never {
  throw new Error('there is no plan')
}

/**
 * Draws messages in any order that a record, a client or a provider could produce, and in some that should not occur.
 */
function anyConversation(random: () => number): Message[] {
  const below = (limit: number) => Math.floor(random() * limit)
  const ids = ['call_0', 'call_1', 'call_2', 'other']
  const messages: Message[] = []
  for (let sequence = 1; sequence <= below(60); sequence++) {
    const kind = random()
    const words = text('w'.repeat(below(800)))
    const some = ids.filter(() => random() < 0.5)
    if (kind < 0.2) messages.push(message(sequence, 'user', random() < 0.1 ? [words, imageFile] : [words]))
    else if (kind < 0.5) messages.push(message(sequence, 'agent', [words, ...some.map(call)]))
    else
      messages.push(
        message(
          sequence,
          'tool_result',
          some.map((id) => result(id, 'r'.repeat(below(3000)))),
        ),
      )
  }
  // Turns are read one after another, but a queued message has its sequence before the turn ahead of it ends.
  return messages.map((each, index) => ({ ...each, sequence: index % 7 === 3 ? each.sequence + 1000 : each.sequence }))
}

describe.each(seedsOf('conversations'))('any conversation (SEED=%i)', (seed) => {
  const random = createRandom(seed)
  const samples = Array.from({ length: countOf('drawnConversations') }, () => {
    const original = anyConversation(random)
    const contextTokens = Math.floor(random() * 4000)
    return { original, patched: patchDanglingCalls(original), limits: { fixedTokens: 50, contextTokens } }
  })
  const compacted = samples.flatMap(({ patched, limits }) => {
    const plan = planCompaction(patched, limits)
    return plan === undefined ? [] : [{ patched, limits, plan, messages: applyCompaction(patched, plan) }]
  })

  it('is compacted often enough for this to be a test', () => {
    expect(compacted.length).toBeGreaterThan(50)
    expect(compacted.filter(({ plan }) => plan.droppedBefore > 0 && plan.clearedBefore > 0).length).toBeGreaterThan(0)
  })

  it('has exactly one result for each call, right behind its message, and none without a call', () => {
    for (const messages of [...samples.map(({ patched }) => patched), ...compacted.map(({ messages }) => messages)]) {
      let open: string[] = []
      for (const each of messages) {
        if (each.role !== 'tool_result') expect(open).toEqual([])
        if (each.role !== 'tool_result') open = callIds(each)
        for (const id of resultIds(each)) {
          expect(open).toContain(id)
          open = open.toSpliced(open.indexOf(id), 1)
        }
      }
      expect(open).toEqual([])
    }
  })

  it('keeps its order, its last user message and what follows, and what the model has not answered', () => {
    for (const { patched, messages } of compacted) {
      const places = messages.map(({ id }) => patched.findIndex((each) => each.id === id)).filter((place) => place >= 0)
      expect(places).toEqual(places.toSorted((a, b) => a - b))
      expect(messages.length - places.length).toBeLessThanOrEqual(1)
      const lastUser = patched.findLastIndex(({ role }) => role === 'user')
      const end = patched.slice(Math.max(0, lastUser)).map(({ id }) => id)
      expect(messages.slice(messages.length - end.length).map(({ id }) => id)).toEqual(end)
      const lastAnswer = patched.findLastIndex(({ role }) => role === 'agent')
      const unseen = patched.slice(Math.max(0, lastAnswer, lastUser))
      expect(messages.slice(messages.length - unseen.length)).toEqual(unseen)
    }
  })

  it('has the planned size, is smaller than before, and does not change when compacted again', () => {
    for (const { limits, plan, messages } of compacted) {
      expect(estimate(messages, limits.fixedTokens)).toBe(plan.inputTokensAfter)
      expect(plan.inputTokensAfter).toBeLessThan(plan.inputTokensBefore)
      expect(applyCompaction(messages, plan)).toEqual(messages)
      expect(patchDanglingCalls(messages)).toEqual(messages)
      expect(planCompaction(messages, limits)).toBeUndefined()
    }
  })

  it('drops messages only when clearing results is not enough', () => {
    for (const { patched, limits, plan } of compacted.filter(({ plan }) => plan.droppedBefore > 0)) {
      const lastAnswer = patched.findLastIndex(({ role }) => role === 'agent')
      const everything = { clearedBefore: patched[lastAnswer]?.sequence ?? 0, droppedBefore: 0 }
      const size = estimate(applyCompaction(patched, everything), limits.fixedTokens)
      expect(size).toBeGreaterThan(Math.floor(limits.contextTokens * 0.8))
      expect(plan.inputTokensAfter).toBeLessThan(size)
    }
  })
})
