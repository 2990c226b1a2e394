import { ToolError } from '../../../domain/tools/capabilities/capability.ts'
import { toOutput } from '../../../domain/tools/mcp/calls/results.ts'

const MiB = 1024 * 1024
const PNG = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), Buffer.alloc(100, 7)]).toString('base64')

/** Cannot be put into a text. */
const NO_TEXT = { toString: 1, valueOf: 1 }
const text = (value: string) => ({ type: 'text', text: value })
const read = (...content: unknown[]) => toOutput({ content }, 'Acme')
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

describe('a result', () => {
  it.each<[string, unknown, unknown]>([
    ['one text is that text', { content: [text('hello')] }, 'hello'],
    ['several texts are lines', { content: [text('a'), text('b')] }, { text: 'a\nb' }],
    ['nothing is an empty object', { content: [] }, {}],
    [
      'structured content stands alone when the text is the same',
      { content: [text('{ "a": [1, 2] }')], structuredContent: { a: [1, 2] } },
      { structured_content: { a: [1, 2] } },
    ],
    [
      'structured content has other text beside it',
      { content: [text('Two.')], structuredContent: [1, 2] },
      { structured_content: [1, 2], text: 'Two.' },
    ],
    ['structured content may be null', { content: [], structuredContent: null }, { structured_content: null }],
    [
      'resources are embedded, links kept',
      {
        content: [
          text('See:'),
          { type: 'resource', resource: { uri: 'file:///a.md', mimeType: 'text/markdown', text: '# A' } },
          { type: 'resource_link', uri: 'file:///b', name: 'b', mimeType: 'text/plain', size: 7 },
          { type: 'resource_link', uri: 'file:///c', name: 'c' },
        ],
      },
      {
        text: 'See:',
        resources: [
          { uri: 'file:///a.md', mime_type: 'text/markdown', text: '# A' },
          { uri: 'file:///b', name: 'b', mime_type: 'text/plain' },
          { uri: 'file:///c', name: 'c' },
        ],
      },
    ],
    [
      'audio, bytes and what is unknown are named',
      {
        content: [
          { type: 'audio', data: 'A'.repeat(4096), mimeType: 'audio/wav' },
          { type: 'resource', resource: { uri: 'file:///z', mimeType: 'application/zip', blob: 'AAAA' } },
          { type: 'hologram' },
          { type: 'text', text: 1 },
          null,
          { type: 'image', data: Buffer.from('<svg/>').toString('base64'), mimeType: 'image/png' },
        ],
      },
      {
        omitted: [
          'audio, audio/wav, 3 KiB',
          'resource file:///z, application/zip, 1 KiB',
          'hologram',
          'text',
          'part without a type',
          'image of an unknown kind, image/png, 1 KiB',
        ],
      },
    ],
    [
      'parts whose text is malformed are left out, and nothing else',
      {
        content: [
          { type: NO_TEXT },
          { type: 'image', data: NO_TEXT, mimeType: NO_TEXT },
          { type: 'resource', resource: { uri: NO_TEXT, text: 'a' } },
          { type: 'resource', resource: { uri: 'file:///a', mimeType: NO_TEXT, text: 'a' } },
          { type: 'resource_link', uri: NO_TEXT },
          { type: 'resource_link', uri: 'file:///b', name: NO_TEXT },
          text('kept'),
        ],
      },
      {
        text: 'kept',
        resources: [{ uri: 'file:///a', text: 'a' }, { uri: 'file:///b' }],
        omitted: [
          'part without a type',
          'image of an unknown kind',
          'resource without an address, 1 KiB',
          'link without an address',
        ],
      },
    ],
    ['what cannot be stored is replaced', { content: [text('a\0b\ud800')] }, 'a\ufffdb\ufffd'],
  ])('%s', (_, result, value) => {
    expect(toOutput(result, 'Acme')).toEqual({ value })
  })

  it('has its images, by their content', () => {
    const image = { type: 'image', base64: PNG, media_type: 'image/png' }
    expect(read(text('Look:'), { type: 'image', data: PNG, mimeType: 'image/svg+xml' })).toEqual({
      value: 'Look:',
      images: [image],
    })
    const many = read(...Array.from({ length: 12 }, () => ({ type: 'image', data: PNG, mimeType: 'image/png' })))
    expect(many.images).toEqual(Array(10).fill(image))
    expect(many.value).toEqual({ omitted: Array(2).fill('image too many or too large, image/png, 1 KiB') })
    const large = `${PNG}${'A'.repeat(5 * MiB)}`
    expect(read({ type: 'image', data: large }).images).toBeUndefined()
  })

  it.each<[string, unknown]>([
    ['text', { content: [text('x'.repeat(3 * MiB))] }],
    ['text with escapes', { content: [text('\u0001"\n'.repeat(MiB))] }],
    ['umlauts and surrogates', { content: [text('ä😀'.repeat(MiB))] }],
    ['many texts', { content: Array.from({ length: 5_000 }, () => text('y'.repeat(1_000))) }],
    ['structured content', { content: [text('z'.repeat(MiB))], structuredContent: { a: 'z'.repeat(3 * MiB) } }],
    [
      'resources',
      {
        content: Array.from({ length: 500 }, (_, at) => ({
          type: 'resource',
          resource: { uri: `file:///${'u'.repeat(5_000)}${at}`, text: '"'.repeat(10_000) },
        })),
        structuredContent: { a: 'z'.repeat(500_000) },
      },
    ],
    ['links', { content: Array.from({ length: 900 }, () => ({ type: 'resource_link', uri: '\n'.repeat(9_000) })) }],
    ['names', { content: Array.from({ length: 900 }, () => ({ type: '\u0007x'.repeat(9_000) })) }],
  ])('is bounded well below 2 MiB, and says what is cut: %s', (_, result) => {
    const { value } = toOutput(result, 'Acme')
    expect(bytesOf(value)).toBeLessThan(1.8 * MiB)
    expect(JSON.stringify(value)).toMatch(/\[cut: \d+ of \d+ characters\]|omitted/)
  })

  it('with deep structured content names it', () => {
    let deep: unknown = 1
    for (let level = 0; level < 100_000; level++) deep = { deep }
    expect(toOutput({ content: [text('t')], structuredContent: deep }, 'Acme')).toEqual({
      value: { text: 't', omitted: ['structured content with more than 512 KiB or 64 levels'] },
    })
  })

  it.each([undefined, null, 'text', [], {}, { content: 'text' }])('is refused if it is malformed: %j', (result) => {
    expect(() => toOutput(result, 'Acme')).toThrow('sent a result that the protocol does not allow.')
  })
})

describe('a failed tool', () => {
  it.each<[string, unknown, string]>([
    ['its own text', { content: [text('No such file:'), text('a.txt')] }, 'No such file:\na.txt'],
    ['its structured content', { content: [], structuredContent: { code: 7 } }, '{"code":7}'],
    ['nothing', { content: [] }, 'The tool of the MCP server "Acme" failed and gave no reason.'],
  ])('is reported with %s', (_, result, message) => {
    const fail = () => toOutput({ ...(result as object), isError: true }, 'Acme')
    expect(fail).toThrow(new ToolError(message))
  })

  it('is reported in at most 4,000 bytes', () => {
    const fail = () => toOutput({ isError: true, content: [text('ä'.repeat(MiB))] }, 'Acme')
    expect(fail).toThrow(new ToolError('ä'.repeat(2_000)))
  })
})
