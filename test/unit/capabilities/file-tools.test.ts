import { monitorEventLoopDelay } from 'node:perf_hooks'
import { findBytes } from '../../../lib/find-bytes.ts'
import { createMemoryFiles } from './memory-files.ts'
import { runTool } from './run-tool.ts'

// biome-ignore lint/suspicious/noExplicitAny: a tool's value is any JSON.
type Value = any
type Contents = Parameters<typeof createMemoryFiles>[0]

const MiB = 1024 * 1024
const read = async (content: string | Buffer, args: object = {}): Promise<Value> =>
  runTool('read_file', { path: '/a', ...args }, { files: createMemoryFiles({ '/a': content }).files })

describe('read_file', () => {
  const lines = 'one\r\ntwo\n\nfour'
  it.each<[string, string, object, object]>([
    ['the whole as it is', `\ufeff${lines}`, {}, { content: `\ufeff${lines}`, first_line: 1, next_offset: null }],
    ['a last line with its end', 'a\nb\n', {}, { content: 'a\nb\n', total_lines: 2, next_offset: null }],
    ['lines in the middle', lines, { offset: 2, limit: 2 }, { content: 'two\n\n', first_line: 2, next_offset: 4 }],
    ['the last line', lines, { offset: 4, limit: 9 }, { content: 'four', total_lines: 4, next_offset: null }],
    ['from the first line at 0', lines, { offset: 0, limit: 1 }, { content: 'one\r\n', first_line: 1, next_offset: 2 }],
    ['nothing of an empty file', '', {}, { content: '', total_lines: 0, size_bytes: 0, next_offset: null }],
    ['one empty line', '\n', {}, { content: '\n', total_lines: 1, next_offset: null }],
  ])('reads %s', async (_, content, args, value) => {
    expect(await read(content, args)).toMatchObject({ path: '/a', encoding: 'text', ...value })
  })

  it('reads 2,000 lines unless it is told otherwise', async () => {
    const value = await read('x\n'.repeat(5000))
    expect(value).toMatchObject({
      content: 'x\n'.repeat(2000),
      total_lines: 5000,
      next_offset: 2001,
      size_bytes: 10_000,
    })
    expect((await read('x\n'.repeat(5000), { offset: 2001, limit: 5000 })).next_offset).toBeNull()
  })

  it.each<[string, string]>([
    ['letters', 'a'],
    ['emoji', '😀'],
    ['what JSON escapes', '\u0001'],
    ['quotes', '"'],
    ['accents', 'é'],
  ])('cuts a long line of %s between characters, says so, and goes on after it', async (_, character) => {
    const value = await read(`${character.repeat(MiB)}\nnext`)
    expect(JSON.stringify(value).length).toBeLessThan(110 * 1024)
    expect(value.content).toBe(character.repeat(value.content.length / character.length))
    expect(Buffer.byteLength(JSON.stringify(value.content))).toBeGreaterThan(100 * 1024 - 8)
    expect(value.notice).toContain(`first ${Buffer.byteLength(value.content)} bytes`)
    expect(value).toMatchObject({ total_lines: 2, next_offset: 2 })
    expect(await read(`${character.repeat(MiB)}\nnext`, { offset: 2 })).toMatchObject({ content: 'next' })
  })

  it('reads all of a large file in parts that are bounded and whole lines', async () => {
    const content = Array.from({ length: 9000 }, (_, at) => `${'é"\t😀'.repeat(at % 40)}\r\n`).join('')
    let all = ''
    for (let offset: number | null = 1; offset !== null; ) {
      const value: Value = await read(content, { offset, limit: 9000 })
      expect(value).not.toHaveProperty('notice')
      expect(JSON.stringify(value).length).toBeLessThan(110 * 1024)
      all += value.content
      offset = value.next_offset
    }
    expect(all).toBe(content)
  })

  it('returns binary content in base64, by bytes, in parts that can be joined', async () => {
    const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, at) => (at * 7) % 256))
    const parts: string[] = []
    for (let offset: number | null = 0; offset !== null; ) {
      const value: Value = await read(bytes, { offset, limit: 1_000_000 })
      expect(value).toMatchObject({ encoding: 'base64', size_bytes: bytes.length })
      parts.push(value.content)
      offset = value.next_offset
    }
    expect(parts).toHaveLength(3)
    expect(Buffer.from(parts.join(''), 'base64')).toEqual(bytes)
    expect(await read(bytes, { offset: 1, limit: 2 })).toMatchObject({ content: 'Bw4=', next_offset: 3 })
  })

  it('marks what it has read, a part too, as seen', async () => {
    const { files, find } = createMemoryFiles({ '/a': 'one\ntwo' })
    await runTool('read_file', { path: '/a', limit: 1 }, { files })
    expect(find('/a')?.seenContentId).toBe(find('/a')?.contentId)
  })
})

describe('edit_file', () => {
  it.each<[string, string | Buffer, [string, string], string, object]>([
    ['a word', 'one two\nthree', ['two', '2'], 'one 2\nthree', { size_bytes: 11, line: 1 }],
    ['lines', 'a\nb\nc\n', ['b\nc', 'x'], 'a\nx\n', { line: 2 }],
    ['what is removed', 'a b', [' b', ''], 'a', { size_bytes: 1, line: 1 }],
    ['what $& and $1 mean elsewhere', 'a', ['a', '$&$1'], '$&$1', {}],
    [
      'emoji and a BOM, line ends as they are',
      '\ufeffa\r\n😀\r\nb',
      ['😀\r\n', '😁\r\n'],
      '\ufeffa\r\n😁\r\nb',
      { line: 2 },
    ],
  ])('replaces %s', async (_, content, [old_text, new_text], expected, value) => {
    const { files, find } = createMemoryFiles({ '/a': content })
    const edited = await runTool('edit_file', { path: 'a', old_text, new_text }, { files })
    expect(edited).toMatchObject({ path: '/a', ...value })
    expect(find('/a')?.bytes.toString()).toBe(expected)
    expect(find('/a')?.seenContentId).toBe(find('/a')?.contentId)
  })

  it.each<[string, Contents, [string, string], RegExp]>([
    [
      'text that is not there',
      { '/a': 'one' },
      ['two', ''],
      /^old_text is not in \/a; read it again and copy.*exactly\.$/,
    ],
    ['other line ends', { '/a': 'a\r\nb' }, ['a\nb', ''], /Its lines end with \\r\\n\.$/],
    ['text that is there twice', { '/a': 'a-a' }, ['a', 'b'], /^old_text is 2 times in \/a; add lines/],
    ['text that overlaps itself', { '/a': 'aaa' }, ['aa', 'b'], /^old_text is 2 times/],
    ['no change', { '/a': 'a' }, ['a', 'a'], /the same; nothing would change/],
    ['a binary file', { '/a': Buffer.from([97, 0, 255]) }, ['a', 'b'], /^\/a is not a text file; write_file replaces/],
    ['a directory', { '/a': null }, ['a', 'b'], /^\/a is a directory; list_directory/],
    ['no file', {}, ['a', 'b'], /^There is no file or directory \/a; list_directory/],
    [
      'a file that becomes too large',
      { '/a': 'ab' },
      ['b', 'b'.repeat(1000)],
      /would have 1001 bytes; a file has at most 1000\.$/,
    ],
    ['no old text', { '/a': 'a' }, ['', 'b'], /old_text/],
  ])('refuses %s, and changes nothing', async (_, contents, [old_text, new_text], sentence) => {
    const { files, find } = createMemoryFiles(contents)
    const before = find('/a')
    await expect(runTool('edit_file', { path: '/a', old_text, new_text }, { files })).rejects.toThrow(sentence)
    expect(find('/a')).toEqual(before)
  })

  it('refuses a file that is read-only, or has changed since it was read, until that is read again', async () => {
    const { files, put, find } = createMemoryFiles({ '/a': 'one' })
    const edit = (old_text: string) => runTool('edit_file', { path: '/a', old_text, new_text: 'x' }, { files })
    await runTool('read_file', { path: '/a' }, { files })
    put('/a', 'two one')
    await expect(edit('one')).rejects.toThrow('/a has changed since it was read; read it again.')
    await runTool('read_file', { path: '/a' }, { files })
    expect(await edit('one')).toMatchObject({ size_bytes: 5 })
    expect(await edit('two ')).toMatchObject({ size_bytes: 2 })
    put('/a', 'x', { isReadonly: true, seenContentId: null })
    await expect(edit('x y')).rejects.toThrow(/read-only/)
    expect(find('/a')?.bytes.toString()).toBe('x')
  })

  it.each([{ hasChanged: true }, { isRepeated: true }])(
    'says of an edit that was made before what it would have said: %j',
    async (attempt) => {
      const { files } = createMemoryFiles({ '/a': 'a\nold new' }, attempt)
      const edit = { path: '/a', old_text: 'old', new_text: 'new' }
      expect(await runTool('edit_file', edit, { files, mayHaveRun: true })).toEqual({
        path: '/a',
        size_bytes: 9,
        line: 2,
      })
      const gone = createMemoryFiles({}, { hasChanged: true }).files
      const unknown = { path: '/a', size_bytes: null, line: null }
      expect(await runTool('edit_file', edit, { files: gone, mayHaveRun: true })).toEqual(unknown)
    },
  )

  it('finds text that search engines find slowly without holding up other work', async () => {
    const bytes = Buffer.alloc(10 * MiB, 'a')
    const sought = Buffer.from(`${'a'.repeat(16_000)}b${'a'.repeat(16_000)}`)
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    expect(await findBytes(bytes, sought)).toEqual({ first: -1, count: 0 })
    sought.copy(bytes, 9 * MiB)
    expect(await findBytes(bytes, sought)).toEqual({ first: 9 * MiB, count: 1 })
    delay.disable()
    // Some 5 ms; searched with indexOf it would be a minute.
    expect(delay.max / 1e6).toBeLessThan(1000)
  })
})

describe('write_file and delete_file', () => {
  it('write text and base64, and answer a repeated call as the first', async () => {
    for (const attempt of [{}, { isRepeated: true }]) {
      const { files, find } = createMemoryFiles({}, attempt)
      const text = { path: 'a//b/', content: 'é' }
      expect(await runTool('write_file', text, { files })).toEqual({ path: '/a/b', size_bytes: 2 })
      const binary = { path: '/c', content: '/wA=', encoding: 'base64' }
      expect(await runTool('write_file', binary, { files })).toEqual({ path: '/c', size_bytes: 2 })
      expect(find('/c')?.bytes).toEqual('isRepeated' in attempt ? undefined : Buffer.from([255, 0]))
    }
  })

  it('delete once', async () => {
    const { files } = createMemoryFiles({ '/a': 'x' })
    expect(await runTool('delete_file', { path: '/a' }, { files })).toEqual({ path: '/a', deleted: true })
    expect(await runTool('delete_file', { path: '/a' }, { files })).toEqual({ path: '/a', deleted: false })
    const repeated = createMemoryFiles({}, { isRepeated: true }).files
    expect(await runTool('delete_file', { path: '/a' }, { files: repeated })).toEqual({ path: '/a', deleted: true })
  })

  it.each<[string, object, RegExp]>([
    ['read_file', { path: '/a/../b' }, /^path must not have a segment \. or \.\.\.$/],
    ['read_file', { path: '/a\0' }, /^path must not contain control characters/],
    ['write_file', { path: '/a\nb', content: '' }, /^path must not contain control characters/],
    ['stat_file', { path: `/${'x'.repeat(1025)}` }, /^path must be at most 1024 bytes/],
    ['write_file', { path: '/a/_b', content: '' }, /^path must not have a segment that begins with _/],
    ['write_file', { path: '/', content: '' }, /^path must not be the root/],
    ['write_file', { path: '/a', content: '?', encoding: 'base64' }, /must be base64/],
    ['edit_file', { path: '/_a', old_text: 'a', new_text: '' }, /begins with _/],
    ['delete_file', { path: '//' }, /^path must not be the root/],
    ['list_directory', { path: '/nowhere' }, /^There is no file or directory \/nowhere/],
    ['list_directory', { path: '/a' }, /^\/a is a file, not a directory; read_file/],
    ['list_directory', { offset: 5 }, /^offset is 5, but there are only 1 entries/],
    ['read_file', { path: '/a', offset: 3 }, /^\/a has no line 3/],
    ['read_file', { path: '/a', lines: 3 }, /lines is not one of the fields/],
  ])('%s refuses %j in a sentence', async (name, args, sentence) => {
    const { files } = createMemoryFiles({ '/a': 'one\ntwo' })
    await expect(runTool(name, { ...args }, { files })).rejects.toThrow(sentence)
  })
})

describe('list_directory', () => {
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`/${String(at).padStart(5, '0')}`, '']))
  const list = async (contents: Contents, args: object) => {
    const { files, counted } = createMemoryFiles(contents)
    const value: Value = await runTool('list_directory', { ...args }, { files })
    return { ...value, length: value.entries.length, pages: counted.pages }
  }

  it.each<[object, object]>([
    [{}, { length: 200, next_offset: 200, pages: 2 }],
    [
      { recursive: true, limit: 5 },
      { length: 5, next_offset: 5, pages: 1 },
    ],
    [{ limit: 5000 }, { length: 1000, next_offset: 1000, pages: 6 }],
    [{ offset: 19_990 }, { length: 10, next_offset: null }],
    [
      { offset: 19_990, limit: 10 },
      { length: 10, next_offset: null },
    ],
  ])('gives a part of 20,000 and reads no more than that needs: %j', async (args, expected) => {
    expect(await list(many, args)).toMatchObject({ path: '/', ...expected })
  })

  it('describes entries, and ends a part before it is too large', async () => {
    const { entries } = await list({ '/d': null, '/f': 'abc' }, {})
    expect(entries).toEqual([
      { path: '/d', type: 'directory' },
      { path: '/f', type: 'file', size_bytes: 3 },
    ])
    const long = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`/${at}${'é'.repeat(500)}`, '']))
    const { length, next_offset, entries: fitting } = await list(long, { limit: 300 })
    expect(Buffer.byteLength(JSON.stringify(fitting))).toBeLessThan(101 * 1024)
    expect([length, next_offset]).toEqual([98, 98])
  })
})
