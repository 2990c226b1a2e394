import type { ChatRequest } from '../../../api/faces/ai-sdk/endpoints.ts'
import { answersTo, readIntent } from '../../../api/faces/ai-sdk/request.ts'
import type { RequestedCall } from '../../../contract/turns.ts'

const request = (parts: object[], more: object = {}, role = 'user') =>
  ({
    id: 'c',
    messages: [
      { role: 'user', parts: [] },
      { role, parts },
    ],
    ...more,
  }) as ChatRequest
const image = (more: object) => ({ type: 'file', mediaType: 'image/png', ...more })

describe('the last message of a chat', () => {
  it.each<[string, object, object[]]>([
    ['text', { type: 'text', text: 'Hi' }, [{ type: 'text', text: 'Hi' }]],
    [
      'an image as data',
      image({ url: 'data:image/png;base64,AA==' }),
      [{ type: 'image', base64: 'AA==', media_type: 'image/png' }],
    ],
    ['an image elsewhere', image({ url: 'https://x/y.png' }), [{ type: 'image', url: 'https://x/y.png' }]],
    [
      'a text file in base64',
      { type: 'file', mediaType: 'text/plain', filename: 'a.txt', url: 'data:text/plain;base64,SGk=' },
      [{ type: 'text', text: 'File a.txt:\nHi\n' }],
    ],
    [
      'a JSON file in plain text',
      { type: 'file', mediaType: 'application/json', url: 'data:application/json,%7B%7D' },
      [{ type: 'text', text: 'File application/json:\n{}\n' }],
    ],
  ])('is %s', (_, part, content) => {
    expect(readIntent(request([part, { type: 'data-unknown', data: 1 }]))).toEqual({
      kind: 'message',
      content,
      isSentAgain: false,
    })
  })

  it.each<[string, ChatRequest, RegExp]>([
    [
      'an answer to generate again',
      request([], { trigger: 'regenerate-message' }, 'assistant'),
      /cannot be generated again/,
    ],
    ['an edited message', request([{ type: 'text', text: 'x' }], { messageId: 'u1' }), /cannot be edited/],
    ['a message of another role', request([], {}, 'system'), /^messages\.1\.role: must be user or assistant/],
    ['nothing', request([{ type: 'text', text: '' }]), /^messages\.1\.parts: must have text or a file/],
    ['text that is not text', request([{ type: 'text', text: 1 }]), /^messages\.1\.parts\.0\.text: must be a string/],
    ['a file without an address', request([image({})]), /^messages\.1\.parts\.0\.url: must be a string/],
    ['a file without a type', request([{ type: 'file', url: 'data:,' }]), /mediaType: must be a string/],
    ['an image in plain text', request([image({ url: 'data:image/png,x' })]), /must be a data: URL in base64/],
    [
      'a file that a model cannot read',
      request([{ type: 'file', mediaType: 'application/pdf', url: 'data:application/pdf;base64,AA==' }]),
      /must be an image, or a text file as a data: URL, not application\/pdf/,
    ],
    [
      'a text file with broken percent-encoding',
      request([{ type: 'file', mediaType: 'text/plain', url: 'data:text/plain,%E0' }]),
      /must be percent-encoded/,
    ],
  ])('is refused if it is %s', (_, given, sentence) => {
    expect(() => readIntent(given)).toThrow(sentence)
  })
})

describe('answers in a history', () => {
  const tool: RequestedCall = { id: 'c1', name: 'paint', arguments: {}, kind: 'client_tool' }
  const approval: RequestedCall = { ...tool, kind: 'approval' }
  const part = (state: string, more: object = {}) => ({ type: 'tool-paint', toolCallId: 'c1', state, ...more })

  it.each<[string, RequestedCall, object, object | undefined]>([
    ['an output', tool, part('output-available', { output: { a: 1 } }), { result: { a: 1 } }],
    ['no output at all', tool, part('output-available'), { result: null }],
    ['an error', tool, part('output-error', { errorText: 'Broken' }), { error: 'Broken' }],
    ['an error without a text', tool, part('output-error'), { error: 'The tool failed.' }],
    ['a call that has no answer yet', tool, part('input-available'), undefined],
    ['an answer to another call', tool, { ...part('output-available'), toolCallId: 'c2' }, undefined],
    ['an output where approval is needed', approval, part('output-available', { output: 1 }), undefined],
    [
      'a yes, whatever the arguments are now',
      approval,
      part('approval-responded', { input: { forged: true }, approval: { id: 'c1', approved: true } }),
      { result: { approved: true } },
    ],
    ['a no', approval, part('approval-responded', { approval: { approved: false } }), { result: { approved: false } }],
    [
      'a no with a reason',
      approval,
      part('approval-responded', { approval: { approved: false, reason: 'Too red' } }),
      { error: 'The user did not approve this call: Too red' },
    ],
    ['a denied call', approval, part('output-denied'), { result: { approved: false } }],
    ['a response without a decision', approval, part('approval-responded', { approval: {} }), undefined],
  ])('have %s', (_, call, given, expected) => {
    const results = expected === undefined ? [] : [{ tool_call_id: 'c1', ...expected }]
    expect(answersTo([call], [given as { type: string }])).toEqual(results)
  })
})
