import { llmsim } from '../../../domain/models/llm/simulator/llmsim.ts'
import { estimateTokens } from '../../../domain/models/llm/token-estimate.ts'
import { ask, messageOf, requestOf, userSays } from './ask.ts'

describe('llmsim-default', () => {
  it('answers twenty tokens at once and then finishes', async () => {
    let timersRan = false
    setImmediate(() => {
      timersRan = true
    })
    const asked = await ask(llmsim('llmsim-default'))
    expect(timersRan).toBe(false)
    expect(asked.textDeltas).toHaveLength(20)
    expect(asked.parts.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop', usage: { output_tokens: 20 } })
  })

  it('estimates the input from the system prompt, the messages, the calls and their results', async () => {
    const call = { type: 'tool_call' as const, id: 'c', name: 'abcd', arguments: {} }
    const result = { type: 'tool_result' as const, tool_call_id: 'c', result: 'ab' }
    const asked = await ask(llmsim('llmsim-default'), {
      systemPrompt: '12345678',
      messages: [userSays('1234'), messageOf('agent', call), messageOf('tool_result', result)],
    })
    // 8 + 4 + 6 + 4 characters, at four per token, rounded up.
    expect(asked.finish?.usage.input_tokens).toBe(6)
  })

  it('throws the reason of a signal that is aborted already, before any part', async () => {
    const reason = new Error('cancelled by the user')
    const asked = await ask(llmsim('llmsim-default'), { signal: AbortSignal.abort(reason) })
    expect(asked.error).toBe(reason)
    expect(asked.parts).toHaveLength(0)
  })
})

describe('the limit of a call', () => {
  it('ends an answer there', async () => {
    const asked = await ask(llmsim('llmsim-lorem-40'), { maxOutputTokens: 16 })
    expect(asked.textDeltas).toHaveLength(16)
    expect(asked.finish).toMatchObject({ finishReason: 'length', usage: { output_tokens: 16 } })
  })

  it('leaves a shorter answer as it is', async () => {
    const asked = await ask(llmsim('llmsim-default'), { maxOutputTokens: 20 })
    expect(asked.parts).toEqual((await ask(llmsim('llmsim-default'))).parts)
  })

  it('leaves out the tool calls after it', async () => {
    const text = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen'
    const script = [{ text, tool_calls: [{ name: 'add', arguments: {} }] }]
    const systemPrompt = ['```llmsim', JSON.stringify(script), '```'].join('\n')
    const asked = await ask(llmsim('llmsim-script'), { systemPrompt, maxOutputTokens: 16 })
    expect(asked).toMatchObject({ text, calls: [], finish: { finishReason: 'length' } })
  })
})

describe('llmsim-echo', () => {
  const echo = llmsim('llmsim-echo')

  it('sends the last user message back in several deltas', async () => {
    const text = 'Please repeat  this,\nword for word. 😀😀 日本語\n'
    const messages = [userSays('an older one'), userSays(text), messageOf('agent', { type: 'text', text: 'not this' })]
    const asked = await ask(echo, { messages })
    expect(asked.text).toBe(text)
    expect(asked.textDeltas.length).toBeGreaterThan(3)
    expect(asked.finish?.usage.output_tokens).toBe(estimateTokens(text))
  })

  it('never cuts a character in two', async () => {
    const asked = await ask(echo, { messages: [userSays('😀'.repeat(50))] })
    expect(asked.textDeltas.every((delta) => delta.isWellFormed())).toBe(true)
    expect(asked.text).toBe('😀'.repeat(50))
  })

  it('names images by type and size instead of sending them back', async () => {
    const gif = Buffer.from('GIF89a\x03\0\x02\0', 'latin1').toString('base64')
    const message = messageOf(
      'user',
      { type: 'text', text: 'see' },
      { type: 'image', base64: gif, media_type: 'image/gif' },
      { type: 'image', base64: 'aGk=', media_type: 'image/png' },
      { type: 'image', url: 'https://example.com/cat.png' },
    )
    expect((await ask(echo, { messages: [message] })).text).toBe('see\n[image image/gif 3x2]\n[image]\n[image]')
  })

  it('answers nothing when no user has said anything', async () => {
    const asked = await ask(echo)
    expect(asked.parts.map((part) => part.type)).toEqual(['finish'])
  })
})

describe('llmsim-lorem-<n>', () => {
  it('answers exactly n tokens at five milliseconds each', async () => {
    const startedMs = performance.now()
    const asked = await ask(llmsim('llmsim-lorem-60'))
    expect(asked.textDeltas).toHaveLength(60)
    expect(asked.text).toMatch(/^Lorem ipsum dolor sit amet, /)
    expect(asked.finish?.usage.output_tokens).toBe(60)
    expect(performance.now() - startedMs).toBeGreaterThan(250)
  })

  it.each(['llmsim-lorem-1', 'llmsim-lorem-100000', 'llmsim-lorem-200-copy'])('knows %s', (name) => {
    expect(llmsim(name)).toBeDefined()
  })

  it.each([
    'llmsim-lorem-0',
    'llmsim-lorem-100001',
    'llmsim-lorem-',
    'llmsim-lorem-x',
    'llmsim-lorem--5',
    'llmsim',
    'gpt-5',
  ])('does not know %s', (name) => {
    expect(llmsim(name)).toBeUndefined()
  })

  it('stops at once, with the reason, when it is aborted between two tokens', async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const model = llmsim('llmsim-lorem-100000')
    const deltas: string[] = []
    const read = async () => {
      for await (const part of model?.(requestOf({ signal: controller.signal })) ?? []) {
        if (part.type === 'text') deltas.push(part.delta)
        if (deltas.length === 3) setTimeout(() => controller.abort(reason), 0)
      }
    }
    await expect(read()).rejects.toBe(reason)
    expect(deltas.length).toBeLessThan(50_000)
  })
})

describe('llmsim-latency', () => {
  it('waits for the first token and then paces the others', async () => {
    const startedMs = performance.now()
    const timesMs: number[] = []
    for await (const _part of llmsim('llmsim-latency')?.(requestOf()) ?? []) timesMs.push(performance.now() - startedMs)
    expect(timesMs[0]).toBeGreaterThan(390)
    const tokens = timesMs.length - 1
    expect(tokens).toBeGreaterThan(20)
    expect(timesMs.at(-1)).toBeGreaterThan(390 + tokens * 18)
  })

  it('stops at once when it is aborted before the first token', async () => {
    const asked = await ask(llmsim('llmsim-latency'), { signal: AbortSignal.timeout(20) })
    expect(asked.error).toMatchObject({ name: 'TimeoutError' })
    expect(asked.parts).toHaveLength(0)
  })
})
