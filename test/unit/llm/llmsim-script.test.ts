import { llmsim } from '../../../domain/models/llm/simulator/llmsim.ts'
import { checkScript, parseScript } from '../../../domain/models/llm/simulator/llmsim-script.ts'
import { ask, failureOf } from './ask.ts'

const model = llmsim('llmsim-script')
const promptOf = (script: unknown) => `Be kind.\n\n\`\`\`llmsim\n${JSON.stringify(script, null, 2)}\n\`\`\`\nAnd brief.`

describe('the steps of a script', () => {
  it('answer the calls of the session one after the other, and an end text after the last', async () => {
    const systemPrompt = promptOf([{ text: 'first' }, { text: 'second one' }])
    expect((await ask(model, { systemPrompt, callIndex: 0 })).text).toBe('first')
    expect((await ask(model, { systemPrompt, callIndex: 1 })).text).toBe('second one')
    expect((await ask(model, { systemPrompt, callIndex: 2 })).text).toBe('[end of script]')
  })

  it('are all played when the prompt has no script', async () => {
    expect((await ask(model, { systemPrompt: 'Be kind.' })).text).toBe('[end of script]')
  })

  it('send thinking, then text, then the calls, then the finish', async () => {
    const step = { tool_calls: [{ name: 'add', arguments: { a: 1 } }], text: 'one two', thinking: 'hm well' }
    const asked = await ask(model, { systemPrompt: promptOf([step]) })
    expect(asked.parts.map((part) => part.type)).toEqual([
      'thinking',
      'thinking',
      'text',
      'text',
      'tool_call',
      'finish',
    ])
    expect(asked.thinking).toBe('hm well')
    expect(asked.finish?.finishReason).toBe('tool_calls')
    expect(asked.finish?.usage.output_tokens).toBeGreaterThan(3)
  })

  it('may be empty', async () => {
    const asked = await ask(model, { systemPrompt: promptOf([{}]) })
    expect(asked.parts.map((part) => part.type)).toEqual(['finish'])
  })

  it('are read from a block with Windows line ends, too', () => {
    expect(parseScript('Hi\r\n```llmsim\r\n[{"text":"a"}]\r\n```\r\n')).toEqual([{ text: 'a' }])
  })
})

describe('the tool calls of a step', () => {
  it('have ids that differ within the session and are the same on every attempt', async () => {
    const calls = [
      { name: 'a', arguments: {} },
      { name: 'b', arguments: { x: [1] }, id: 'mine' },
    ]
    const systemPrompt = promptOf([{ tool_calls: calls }, { tool_calls: calls }])
    const first = await ask(model, { systemPrompt })
    expect(first.calls).toEqual([
      { id: 'call_0_0', name: 'a', arguments: {} },
      { id: 'mine', name: 'b', arguments: { x: [1] } },
    ])
    expect((await ask(model, { systemPrompt, failures: 2 })).calls).toEqual(first.calls)
    expect((await ask(model, { systemPrompt, callIndex: 1 })).calls[0]?.id).toBe('call_1_0')
  })

  it.each([
    ['{"a":1}', { a: 1 }, undefined],
    ['', {}, undefined],
    ['{"a":', {}, /not JSON/],
    ['[1]', {}, /not an object/],
  ])('take %j as what the model wrote', async (written, parsed, problem) => {
    const asked = await ask(model, { systemPrompt: promptOf([{ tool_calls: [{ name: 'a', arguments: written }] }]) })
    expect(asked.calls[0]?.arguments).toEqual(parsed)
    if (problem === undefined) expect(asked.calls[0]).not.toHaveProperty('argumentsError')
    else expect(asked.calls[0]?.argumentsError).toMatch(problem)
  })
})

describe('the error of a step', () => {
  it('fails every attempt without `times`', async () => {
    const systemPrompt = promptOf([{ text: 'never', error: { status: 503, message: 'overloaded' } }])
    const asked = await ask(model, { systemPrompt, failures: 50 })
    expect(failureOf(asked)).toMatchObject({ message: 'llmsim answered 503: overloaded', status: 503, retryable: true })
    expect(asked.parts).toHaveLength(0)
  })

  it('fails the first `times` attempts and then lets the rest of the step answer', async () => {
    const error = { status: 429, message: 'slow down', retry_after_ms: 25, times: 2 }
    const systemPrompt = promptOf([{ text: 'at last', error }])
    expect(failureOf(await ask(model, { systemPrompt, failures: 0 })).retryAfterMs).toBe(25)
    expect(failureOf(await ask(model, { systemPrompt, failures: 1 })).status).toBe(429)
    expect((await ask(model, { systemPrompt, failures: 2 })).text).toBe('at last')
  })

  it.each([
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [422, false],
    [408, true],
    [409, true],
    [429, true],
    [500, true],
    [503, true],
    [599, true],
  ])('of status %i is retryable: %s', async (status, retryable) => {
    const systemPrompt = promptOf([{ error: { status, message: 'no' } }])
    expect(failureOf(await ask(model, { systemPrompt })).retryable).toBe(retryable)
  })

  it("is cleaned like a real provider's", async () => {
    const message =
      'key sk-proj-0123456789abcdef\nat https://me:pass@proxy.example/v1, Authorization: Bearer 0123456789abcdef0123'
    const asked = await ask(model, { systemPrompt: promptOf([{ error: { status: 401, message } }]) })
    expect(failureOf(asked).message).toBe(
      'llmsim answered 401: key [key] at https://proxy.example/v1, Authorization: Bearer [key]',
    )
  })

  it('comes after the thinking and the text with `after_text`, and before any call', async () => {
    const step = {
      thinking: 'hm',
      text: 'half of it',
      tool_calls: [{ name: 'a', arguments: {} }],
      error: { status: 500, message: 'broke', after_text: true, times: 1 },
    }
    const systemPrompt = promptOf([step])
    const broken = await ask(model, { systemPrompt })
    expect(failureOf(broken).status).toBe(500)
    expect([broken.thinking, broken.text, broken.calls, broken.finish]).toEqual(['hm', 'half of it', [], undefined])
    const whole = await ask(model, { systemPrompt, failures: 1 })
    expect([whole.text, whole.calls.length, whole.error]).toEqual(['half of it', 1, undefined])
  })
})

describe('the pace of a step', () => {
  it('waits `delay_ms` before the first part, or before the failure', async () => {
    const startedMs = performance.now()
    await ask(model, { systemPrompt: promptOf([{ text: 'a', delay_ms: 60 }]) })
    expect(performance.now() - startedMs).toBeGreaterThan(50)
    const failingMs = performance.now()
    await ask(model, { systemPrompt: promptOf([{ error: { status: 500, message: 'x' }, delay_ms: 60 }]) })
    expect(performance.now() - failingMs).toBeGreaterThan(50)
  })

  it('follows `tokens_per_second` for thinking and text', async () => {
    const startedMs = performance.now()
    const step = { thinking: 'one two three four five', text: 'six seven eight nine ten', tokens_per_second: 50 }
    const asked = await ask(model, { systemPrompt: promptOf([step]) })
    expect(asked.parts).toHaveLength(11)
    expect(performance.now() - startedMs).toBeGreaterThan(180)
  })

  it('needs no timer of its own for each token at a high rate', async () => {
    const text = 'word '.repeat(20_000).trim()
    const startedMs = performance.now()
    const asked = await ask(model, { systemPrompt: promptOf([{ text, tokens_per_second: 100_000 }]) })
    expect(asked.text).toBe(text)
    // It takes 0.2 s. A timer of a millisecond for each token would take more than 20 s.
    expect(performance.now() - startedMs).toBeGreaterThan(180)
    expect(performance.now() - startedMs).toBeLessThan(18_000)
  })

  it.each([
    { text: 'a', delay_ms: 3_600_000 },
    { text: 'a b c', tokens_per_second: 0.1 },
  ])('stops at once on an abort: %j', async (step) => {
    const asked = await ask(model, { systemPrompt: promptOf([step]), signal: AbortSignal.timeout(20) })
    expect(asked.error).toMatchObject({ name: 'TimeoutError' })
    expect(asked.parts).toHaveLength(0)
  })
})

describe('a malformed script', () => {
  const failing = { status: 500, message: 'x' }
  it.each<[unknown, string]>([
    [{ text: 'a' }, 'The llmsim script must be a list of steps.'],
    [Array(1001).fill({}), 'The llmsim script must have at most 1000 steps.'],
    [[{}, 'text'], "The llmsim script's step 2 must be an object."],
    [[{}, { txt: 'a' }], "The llmsim script's step 2 has a field that is not known: txt."],
    [[{ text: 1 }], "The llmsim script's step 1 is malformed: text must be a string."],
    [[{ thinking: null }], "The llmsim script's step 1 is malformed: thinking must be a string."],
    [[{ tool_calls: {} }], "The llmsim script's step 1 is malformed: tool_calls must be a list."],
    [
      [{ tool_calls: [{ name: 'a', arguments: {} }, { arguments: {} }] }],
      "The llmsim script's step 1 is malformed: tool_calls[1].name must be a string.",
    ],
    [
      [{ tool_calls: [{ name: 'a', arguments: [1] }] }],
      "The llmsim script's step 1 is malformed: tool_calls[0].arguments must be an object or a string.",
    ],
    [
      [{ tool_calls: [{ name: 'a' }] }],
      "The llmsim script's step 1 is malformed: tool_calls[0].arguments must be an object or a string.",
    ],
    [
      [{ tool_calls: [{ name: 'a', arguments: {}, args: 1 }] }],
      "The llmsim script's step 1 is malformed: tool_calls[0] has a field that is not known: args.",
    ],
    [[{ error: { message: 'x' } }], "The llmsim script's step 1 is malformed: error.status must be a whole number."],
    [
      [{ error: { ...failing, status: 200 } }],
      "The llmsim script's step 1 is malformed: error.status must be from 400 to 599.",
    ],
    [[{ error: { ...failing, times: 0 } }], "The llmsim script's step 1 is malformed: error.times must be at least 1."],
    [
      [{ error: { ...failing, after_text: 'yes' } }],
      "The llmsim script's step 1 is malformed: error.after_text must be true or false.",
    ],
    [[{ delay_ms: -1 }], "The llmsim script's step 1 is malformed: delay_ms must not be negative."],
    [[{ delay_ms: 3_600_001 }], "The llmsim script's step 1 is malformed: delay_ms must be at most 3600000 (an hour)."],
    [[{ tokens_per_second: 0 }], "The llmsim script's step 1 is malformed: tokens_per_second must be at least 0.1."],
    [
      [{ tokens_per_second: 100_001 }],
      "The llmsim script's step 1 is malformed: tokens_per_second must be at most 100000.",
    ],
  ])('is described in a sentence (%#)', (script, sentence) => {
    expect(checkScript(promptOf(script))).toBe(sentence)
    expect(() => parseScript(promptOf(script))).toThrow(sentence)
  })

  it('may be invalid JSON, or have no end', () => {
    expect(checkScript('```llmsim\n[{]\n```')).toMatch(/^The llmsim script is not JSON: /)
    expect(checkScript('```llmsim\n```')).toMatch(/^The llmsim script is not JSON: /)
    expect(checkScript('```llmsim\n[{}]')).toBe('The llmsim script has no closing ``` line.')
  })

  it('is not found in a prompt without a block, or with one in another language', () => {
    expect(checkScript('Be kind.')).toBeUndefined()
    expect(checkScript('```json\n[{]\n```')).toBeUndefined()
    expect(checkScript(promptOf([{ text: 'fine', error: { ...failing, times: 1 } }]))).toBeUndefined()
    expect(parseScript('Be kind.')).toBeUndefined()
  })

  it('fails the call permanently if found only then', async () => {
    const failure = failureOf(await ask(model, { systemPrompt: promptOf([{ text: 1 }]) }))
    expect(failure).toMatchObject({ status: 400, retryable: false })
    expect(failure.message).toMatch(/step 1 is malformed: text/)
  })
})
