import { deflateRawSync } from 'node:zlib'
import { createArchiveThreads } from '../../../domain/tools/skills/archive/threads.ts'
import { watchEventLoop } from '../../support/event-loop.ts'
import { skillMd, type ZipEntry, zipOf } from '../../support/zip.ts'

const MIB = 1024 * 1024
const SKILL: ZipEntry = { name: 'SKILL.md', data: skillMd('a') }
const threads = createArchiveThreads()
afterAll(() => threads.close())

/** Returns the files and directories by path, or the problem. */
async function unpack(archive: Uint8Array): Promise<unknown> {
  const { answers, end } = await threads.run(archive, 5000)
  expect(end).toBe('done')
  const last = answers.at(-1)
  if (last !== undefined && 'problem' in last) return last.problem
  const files: Record<string, unknown> = {}
  for (const answer of answers) {
    if ('directories' in answer) for (const path of answer.directories) files[path] = 'directory'
    if (!('file' in answer)) continue
    const { path, bytes, isBase64 } = answer.file
    files[path] = isBase64 ? `${bytes.length} bytes` : Buffer.from(bytes).toString()
  }
  return files
}

const many = (count: number, entry: (at: number) => ZipEntry): ZipEntry[] =>
  Array.from({ length: count }, (_, at) => entry(at))
const zeros = (length: number): ZipEntry => ({ name: `zeros-${length}`, data: Buffer.alloc(length) })
const OVERLAP = 'must not have entries that overlap or reach beyond its end'
const PAD: ZipEntry = { name: 'pad', data: Buffer.alloc(2000, 'q'), method: 0 }
/** Returns files in directories of their own. A file and its directories make `rows` rows. */
const deep = (count: number, rows: number): ZipEntry[] =>
  many(count, (at) => ({ name: `${at}/${'x/'.repeat(rows - 2)}f`, data: 'x' }))
/** Returns an extra field with another name for an entry, for readers that know it. */
const unicodeName = (name: string, crc: number): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUInt16LE(0x7075, 0)
  head.writeUInt16LE(5 + Buffer.byteLength(name), 2)
  head.writeUInt8(1, 4)
  head.writeUInt32LE(crc, 5)
  return Buffer.concat([head, Buffer.from(name)])
}

describe('an archive', () => {
  const text = skillMd('a')
  it.each<[string, ZipEntry[], Record<string, string>]>([
    ['only SKILL.md', [SKILL], { 'SKILL.md': text }],
    ['bytes that are not packed', [{ ...SKILL, method: 0 }], { 'SKILL.md': text }],
    [
      'directories, with and without entries of their own',
      [SKILL, { name: 'a/' }, { name: 'a/b/c.md', data: 'c' }, { name: 'empty/' }],
      { 'SKILL.md': text, a: 'directory', 'a/b': 'directory', 'a/b/c.md': 'c', empty: 'directory' },
    ],
    [
      'one folder around everything',
      [{ name: 'skill/' }, { ...SKILL, name: 'skill/SKILL.md' }, { name: 'skill/a/SKILL.md', data: 'nested' }],
      { 'SKILL.md': text, a: 'directory', 'a/SKILL.md': 'nested' },
    ],
    [
      'one folder whose entry is marked as a directory by its mode only',
      [
        { name: 'skill', mode: 0o040755 },
        { ...SKILL, name: 'skill/SKILL.md' },
      ],
      { 'SKILL.md': text },
    ],
    [
      'what macOS adds',
      [
        { ...SKILL, name: 'skill/SKILL.md' },
        { name: '__MACOSX/' },
        { name: '__MACOSX/skill/._SKILL.md', data: 'x' },
        { name: 'skill/.DS_Store', data: 'x' },
      ],
      { 'SKILL.md': text },
    ],
    [
      'names in UTF-8 that are not marked as that',
      [SKILL, { name: 'größe/日本.txt', data: 'x', flags: 0 }],
      { 'SKILL.md': text, größe: 'directory', 'größe/日本.txt': 'x' },
    ],
    [
      'names of a DOS machine',
      [SKILL, { name: Buffer.from([0x81, 0x2e, 0x6d, 0x64]), flags: 0, data: 'x' }],
      { 'SKILL.md': text, 'ü.md': 'x' },
    ],
    [
      'files that are no text, an empty one and another archive',
      [
        SKILL,
        { name: 'a.bin', data: Buffer.from([0, 1]) },
        { name: 'b.bin', data: Buffer.from([0xff]) },
        { name: 'c.txt', data: '' },
        { name: 'd.zip', data: zipOf([SKILL]) },
      ],
      { 'SKILL.md': text, 'a.bin': '2 bytes', 'b.bin': '1 bytes', 'c.txt': '', 'd.zip': expect.any(String) },
    ],
    ['lines that end with CRLF', [{ ...SKILL, data: 'a\r\n' }], { 'SKILL.md': 'a\r\n' }],
    ['a byte order mark', [{ ...SKILL, data: '\ufeffa' }], { 'SKILL.md': '\ufeffa' }],
  ])('may have %s', async (_, entries, files) => {
    expect(await unpack(zipOf(entries))).toEqual(files)
  })

  it('may have a comment, and nothing behind it', async () => {
    expect(await unpack(zipOf([SKILL], { comment: 'Hello' }))).toEqual({ 'SKILL.md': text })
    expect(await unpack(Buffer.concat([zipOf([SKILL]), Buffer.from('more')]))).toMatch(/^is not a ZIP archive/)
  })

  it('may have 100 entries of 10 MiB together', async () => {
    const entries = [SKILL, ...many(98, (at) => ({ name: `${at}`, data: 'x' })), zeros(MIB)]
    expect(Object.keys((await unpack(zipOf(entries))) as object)).toHaveLength(100)
    const full = [...many(9, (at) => ({ ...zeros(MIB), name: `${at}` })), { ...zeros(MIB), name: 'SKILL.md' }]
    expect(Object.keys((await unpack(zipOf(full))) as object)).toHaveLength(10)
  })

  it('may have 200 files and directories', async () => {
    const entries = [SKILL, ...deep(4, 49), { name: '0/' }, { name: 'a/' }, { name: 'b/' }, { name: 'c/' }]
    expect(Object.keys((await unpack(zipOf(entries))) as object)).toHaveLength(200)
    const inFolder = entries.map((entry) => ({ ...entry, name: `skill/${entry.name}` }))
    expect(Object.keys((await unpack(zipOf([{ name: 'skill/' }, ...inFolder]))) as object)).toHaveLength(200)
  })

  it.each<[string, ZipEntry[], string | RegExp]>([
    ['no entry', [], /^must have a file SKILL.md/],
    ['no SKILL.md', [{ name: 'a', data: 'a' }], /^must have a file SKILL.md, at the top or in the one folder/],
    ['SKILL.md in one of two folders', [{ ...SKILL, name: 'a/SKILL.md' }, { name: 'b/c' }], /^must have a file SKILL/],
    ['SKILL.md two folders down', [{ ...SKILL, name: 'a/b/SKILL.md' }], /^must have a file SKILL.md/],
    ['a directory SKILL.md', [{ name: 'SKILL.md/' }, { name: 'a' }], /^must have a file SKILL.md/],
    ['SKILL.md in other letters', [{ ...SKILL, name: 'Skill.md' }], '"Skill.md" must be named SKILL.md'],
    ['two of them', [SKILL, { ...SKILL, name: 'skill.md' }], '"skill.md" is there beside SKILL.md'],
    ['SKILL.md twice', [SKILL, SKILL], '"SKILL.md" is there twice'],
    ['an entry twice', [SKILL, { name: 'a' }, { name: 'a' }], '"a" is there twice'],
    ['a file and a directory of one name', [SKILL, { name: 'a' }, { name: 'a/' }], '"a" is there twice'],
    ['a file below a file', [SKILL, { name: 'a' }, { name: 'a/b' }], '"a" is a file and a directory'],
    ['101 entries', many(101, (at) => ({ name: `${at}` })), 'must have at most 100 entries'],
    [
      '100,000 entries',
      many(100_000, (at) => ({ name: `${at}`, packed: Buffer.alloc(0) })),
      'must have at most 1000 entries of any kind',
    ],
    [
      '1,001 entries of macOS',
      many(1001, () => ({ name: '__MACOSX/a' })),
      'must have at most 1000 entries of any kind',
    ],
    ['..', [SKILL, { name: '../a' }], '"../a" has a . or .. in its path'],
    ['.. further down', [SKILL, { name: 'a/../../b' }], '"a/../../b" has a . or .. in its path'],
    ['.. as its folder', [{ ...SKILL, name: '../SKILL.md' }], '"../SKILL.md" has a . or .. in its path'],
    ['a dot', [SKILL, { name: './a' }], '"./a" has a . or .. in its path'],
    [
      '.. by the other name',
      [SKILL, { name: 'a', extra: unicodeName('../a', 0xe8b7be43) }],
      '"../a" has a . or .. in its path',
    ],
    ['an absolute path', [SKILL, { name: '/etc/passwd' }], '"/etc/passwd" is an absolute path'],
    ['a drive', [SKILL, { name: 'C:/a' }], '"C:/a" is an absolute path'],
    ['a backslash', [SKILL, { name: 'a\\..\\b' }], '"a\\\\..\\\\b" has a backslash in its name'],
    ['an empty part', [SKILL, { name: 'a//b' }], '"a//b" has an empty part in its path'],
    ['no name', [SKILL, { name: '' }], '"" has an empty part in its path'],
    ['NUL in a name', [SKILL, { name: 'a\0b' }], '"a\\u0000b" has a control character in its name'],
    ['a line feed in a name', [SKILL, { name: 'a\nb' }], '"a\\nb" has a control character in its name'],
    ['a name that is not UTF-8', [SKILL, { name: Buffer.from([0xff]) }], '"\ufffd" has a name that is not UTF-8'],
    ['a long path', [SKILL, { name: 'x'.repeat(952) }], /^"x{200}" has a path of more than 951 bytes of UTF-8$/],
    ['a path of 64 KB', [SKILL, { name: 'x/'.repeat(32_000) }], / has a path of more than 951 bytes of UTF-8$/],
    ['a deep path', [SKILL, { name: `${'d/'.repeat(62)}e` }], / has a path of more than 62 parts$/],
    ['a link', [SKILL, { name: 'a', data: '/etc/passwd', mode: 0o120777 }], '"a" is a link'],
    ['a device', [SKILL, { name: 'a', mode: 0o020666 }], '"a" is neither a file nor a directory'],
    ['an encrypted entry', [SKILL, { name: 'a', flags: 0x801 }], '"a" is encrypted'],
    ['strong encryption', [SKILL, { name: 'a', flags: 0x841 }], /^is not a ZIP archive that can be read: strong/],
    [
      'another compression',
      [SKILL, { name: 'a', method: 14 }],
      '"a" is compressed by method 14; only Deflate is known',
    ],
    ['more than 1 MiB', [SKILL, zeros(MIB + 1)], `"zeros-${MIB + 1}" has more than ${MIB} bytes`],
    [
      'more than 1 MiB unpacked',
      [SKILL, { ...zeros(MIB + 1), method: 0 }],
      `"zeros-${MIB + 1}" has more than ${MIB} bytes`,
    ],
    [
      'more than 10 MiB together',
      [SKILL, ...many(10, (at) => ({ ...zeros(MIB), name: `${at}` }))],
      `"9" is too much: all entries together must have at most ${10 * MIB} bytes`,
    ],
    ['a bomb of 1 GiB', [SKILL, { ...bomb(1024), name: 'a' }], `"a" has more than ${MIB} bytes`],
    ['a bomb that says it has a byte', [SKILL, { ...bomb(64), size: 1 }], `"bomb" has more than ${MIB} bytes`],
    ['too large a size', [SKILL, { name: 'a', data: 'abc', size: 4 }], '"a" has 3 bytes, and its header says 4'],
    ['too small a size', [SKILL, { name: 'a', data: 'abc', size: 2 }], '"a" has 3 bytes, and its header says 2'],
    ['a size of 4 GB', [SKILL, { name: 'a', data: 'abc', size: 0xfffffffe }], /^"a" has 3 bytes, and its header says/],
    ['a wrong checksum', [SKILL, { name: 'a', data: 'abc', crc: 1 }], '"a" is damaged: its checksum is wrong'],
    ['bytes that are not packed', [SKILL, { name: 'a', packed: Buffer.from([0xff, 0xff]) }], '"a" is damaged'],
    [
      'packed bytes that end early',
      [SKILL, { name: 'a', packed: deflateRawSync(Buffer.alloc(999)).subarray(0, 3) }],
      '"a" is damaged',
    ],
    [
      'packed bytes beyond its end',
      [SKILL, { name: 'a', packedSize: 200, packed: Buffer.alloc(0) }],
      'must not have entries that overlap or reach beyond its end',
    ],
    [
      'more packed bytes than it has',
      [SKILL, { name: 'a', packedSize: 0x7fffffff }],
      'must not have entries that overlap or reach beyond its end',
    ],
    ['an offset beyond its end', [SKILL, { name: 'a', offset: 0x7fffffff }], OVERLAP],
    ['an offset into the middle', [SKILL, { name: 'a', offset: 7 }], OVERLAP],
    [
      'a small entry that shares the bytes of another',
      [{ ...SKILL, method: 0 }, { ...SKILL, name: 'b', offset: 0 }, PAD],
      OVERLAP,
    ],
    [
      'an entry in the bytes of another',
      [
        { ...SKILL, data: zipOf([PAD]), method: 0 },
        { ...PAD, offset: 38 },
      ],
      OVERLAP,
    ],
    ['another name in a header', [SKILL, { name: 'a', localName: 'b' }], '"a" has another name in its own header'],
    [
      '201 files and directories',
      [SKILL, ...deep(4, 49), { name: 'a/' }, { name: 'b/' }, { name: 'c/' }, { name: 'd' }],
      'must have at most 200 files and directories, including the directories in paths',
    ],
    [
      'many directories above each file',
      [SKILL, ...many(99, (at) => ({ name: `${at}/${'x/'.repeat(60)}f` }))],
      'must have at most 200 files and directories, including the directories in paths',
    ],
    ['packed bytes that unpack to nothing', [SKILL, { name: 'a', packed: emptyBlocks(9 * MIB) }], '"a" is damaged'],
    ['entries that share their bytes', overlapping(), 'must not have entries that overlap or reach beyond its end'],
  ])('with %s is refused', async (_, entries, problem) => {
    expect(await unpack(zipOf(entries))).toMatch(problem)
  })

  it('that says it has fewer entries is refused', async () => {
    expect(await unpack(zipOf([SKILL, { name: 'a' }], { count: 1 }))).toBe('has more entries than it says')
  })

  it('that says it has more entries is refused', async () => {
    expect(await unpack(zipOf([SKILL], { count: 2 }))).toMatch(/^is not a ZIP archive that can be read: /)
  })

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['a text', Buffer.from('Hello')],
    ['zeros', Buffer.alloc(1000)],
    ['only its end', zipOf([SKILL]).subarray(-30)],
    ['its end missing', zipOf([SKILL]).subarray(0, -30)],
  ])('that is %s is refused', async (_, archive) => {
    expect(await unpack(archive)).toMatch(/^is not a ZIP archive that can be read: /)
  })

  it('is refused, not crashed on, whatever byte of it is another one', async () => {
    const archive = zipOf([SKILL, { name: 'a/b', data: 'b' }])
    for (let at = 0; at < archive.length; at++) {
      const changed = Buffer.from(archive)
      changed[at] = (changed[at] ?? 0) ^ 0xff
      const { answers, end } = await threads.run(changed, 5000)
      expect({ at, end, answered: answers.length > 0 }).toEqual({ at, end: 'done', answered: true })
    }
  })

  it('ends its thread when unpacking fails, and the next one has another', async () => {
    expect(await threads.run('no bytes' as never, 5000)).toMatchObject({ answers: [], end: 'broken' })
    expect(await unpack(zipOf([SKILL]))).toEqual({ 'SKILL.md': text })
  })

  it('of 10 MiB does not hold up the event loop', async () => {
    const archive = zipOf([SKILL, ...many(9, (at) => ({ ...zeros(MIB), method: 0, name: `${at}` }))])
    const watch = watchEventLoop()
    await unpack(archive)
    expect(watch.stop().busyMs).toBeLessThan(150)
  })
})

/** Returns an entry that unpacks to zeros, which are never all in memory. */
function bomb(mebibytes: number): ZipEntry {
  // With a full flush, blocks end on a byte and know nothing of each other.
  const block = deflateRawSync(Buffer.alloc(MIB), { finishFlush: 3 })
  const end = Buffer.from([0x03, 0x00])
  return { name: 'bomb', packed: Buffer.concat([...Array<Buffer>(mebibytes).fill(block), end]), size: mebibytes * MIB }
}

/** Returns packed bytes that unpack to nothing, block by block, and have no end. */
function emptyBlocks(length: number): Buffer {
  return Buffer.alloc(length, Buffer.from([0, 0, 0, 0xff, 0xff]))
}

/** Returns entries that all point to the bytes of the first one. */
function overlapping(): ZipEntry[] {
  const packed = deflateRawSync(Buffer.alloc(100_000))
  const first = { ...SKILL, data: Buffer.alloc(100_000), packed }
  return [first, ...many(50, (at) => ({ name: `${at}`, packed: Buffer.alloc(0), packedSize: 5000, offset: 0 }))]
}
