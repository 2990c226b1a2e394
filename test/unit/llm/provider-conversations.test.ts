import type { ContentPart } from '../../../contract/messages.ts'
import { ask, messageOf, userSays } from './ask.ts'
import { useFakes, withBodies } from './protocols.ts'

const { start } = useFakes()
const PIXEL = 'iVBORw0KGgo='
const DATA_URL = `data:image/png;base64,${PIXEL}`
const EPHEMERAL = { cache_control: { type: 'ephemeral' } }

describe('a conversation', () => {
  const image = { type: 'image' as const, base64: PIXEL, media_type: 'image/png' }
  const gone = { type: 'image' as const, url: 'https://example.com/cat.png' }
  const call = (id: string): ContentPart => ({ type: 'tool_call', id, name: 'add', arguments: { a: 1 } })
  const result = (id: string, value: unknown) => ({ type: 'tool_result' as const, tool_call_id: id, result: value })
  const messages = [
    messageOf('user', { type: 'text', text: 'See' }, image, gone),
    messageOf('agent', { type: 'text', text: 'Wait.' }, call('c1'), call('c2')),
    messageOf('tool_result', result('c1', { sum: 3 }), image, { type: 'text', text: '[Left out: 1 image.]' }),
    messageOf('tool_result', { type: 'tool_result', tool_call_id: 'c2', error: 'no clock' }),
    messageOf('agent', { type: 'text', text: '' }),
    messageOf('agent', { type: 'text', text: 'Three.' }),
    userSays('Thanks'),
  ]
  const functionCall = (id: string) => ({ id, type: 'function', function: { name: 'add', arguments: '{"a":1}' } })
  const chatImage = { type: 'image_url', image_url: { url: DATA_URL } }
  const source = { type: 'base64', media_type: 'image/png', data: PIXEL }
  const inlineData = { mimeType: 'image/png', data: PIXEL }

  it.each(
    withBodies({
      openai: {
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text: 'See' },
              { type: 'input_image', image_url: DATA_URL },
              { type: 'input_text', text: '[image not available]' },
            ],
          },
          { role: 'assistant', content: 'Wait.' },
          { type: 'function_call', call_id: 'c1', name: 'add', arguments: '{"a":1}' },
          { type: 'function_call', call_id: 'c2', name: 'add', arguments: '{"a":1}' },
          {
            type: 'function_call_output',
            call_id: 'c1',
            output: [
              { type: 'input_text', text: '{"sum":3}' },
              { type: 'input_image', image_url: DATA_URL },
              { type: 'input_text', text: '[Left out: 1 image.]' },
            ],
          },
          { type: 'function_call_output', call_id: 'c2', output: '{"error":"no clock"}' },
          { role: 'assistant', content: 'Three.' },
          { role: 'user', content: [{ type: 'input_text', text: 'Thanks' }] },
        ],
      },
      openai_completions: {
        messages: [
          {
            role: 'user',
            content: [{ type: 'text', text: 'See' }, chatImage, { type: 'text', text: '[image not available]' }],
          },
          { role: 'assistant', content: 'Wait.', tool_calls: [functionCall('c1'), functionCall('c2')] },
          { role: 'tool', tool_call_id: 'c1', content: '{"sum":3}' },
          { role: 'tool', tool_call_id: 'c2', content: '{"error":"no clock"}' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'Images of the tool results:' },
              chatImage,
              { type: 'text', text: '[Left out: 1 image.]' },
            ],
          },
          { role: 'assistant', content: 'Three.' },
          { role: 'user', content: 'Thanks' },
        ],
      },
      anthropic: {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'See' },
              { type: 'image', source },
              { type: 'text', text: '[image not available]' },
            ],
          },
          {
            role: 'assistant',
            content: [
              { type: 'text', text: 'Wait.' },
              { type: 'tool_use', id: 'c1', name: 'add', input: { a: 1 } },
              { type: 'tool_use', id: 'c2', name: 'add', input: { a: 1 } },
            ],
          },
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 'c1',
                content: [
                  { type: 'text', text: '{"sum":3}' },
                  { type: 'image', source },
                  { type: 'text', text: '[Left out: 1 image.]' },
                ],
              },
              { type: 'tool_result', tool_use_id: 'c2', content: 'no clock', is_error: true, ...EPHEMERAL },
            ],
          },
          { role: 'assistant', content: [{ type: 'text', text: 'Three.' }] },
          { role: 'user', content: [{ type: 'text', text: 'Thanks', ...EPHEMERAL }] },
        ],
      },
      gemini: {
        contents: [
          { role: 'user', parts: [{ text: 'See' }, { inlineData }, { text: '[image not available]' }] },
          {
            role: 'model',
            parts: [
              { text: 'Wait.' },
              { functionCall: { id: 'c1', name: 'add', args: { a: 1 } } },
              { functionCall: { id: 'c2', name: 'add', args: { a: 1 } } },
            ],
          },
          {
            role: 'user',
            parts: [
              { functionResponse: { id: 'c1', name: 'add', response: { name: 'add', content: '{"sum":3}' } } },
              { functionResponse: { id: 'c2', name: 'add', response: { name: 'add', error: 'no clock' } } },
            ],
          },
          {
            role: 'user',
            parts: [{ text: 'Images of the tool results:' }, { inlineData }, { text: '[Left out: 1 image.]' }],
          },
          { role: 'model', parts: [{ text: 'Three.' }] },
          { role: 'user', parts: [{ text: 'Thanks' }] },
        ],
      },
    }),
  )('is sent to $type with its calls, results and images, and without URLs', async ({ type, body }) => {
    const { fake, model } = await start(type, [{ text: ['ok'] }])
    expect(await ask(model, { messages })).toMatchObject({ error: undefined, text: 'ok' })
    const [part] = Object.keys(body)
    expect({ [String(part)]: Object(fake.requests[0]?.body)[String(part)] }).toEqual(body)
    expect(JSON.stringify(fake.requests[0]?.body)).not.toContain('example.com')
  })

  it.each(['anthropic', 'gemini'] as const)('is sent to %s without texts that it would refuse', async (type) => {
    const { fake, model } = await start(type, [{ text: ['ok'] }])
    await ask(model, {
      messages: [
        messageOf('user', { type: 'text', text: '' }, { type: 'text', text: 'Hi' }),
        messageOf('agent', { type: 'text', text: ' \n' }),
        userSays('?'),
      ],
    })
    expect(JSON.stringify(fake.requests[0]?.body)).not.toMatch(/"text":"(\s|\\n)*"/)
    expect(JSON.stringify(fake.requests[0]?.body)).not.toMatch(/"role":"(assistant|model)"/)
  })
})
