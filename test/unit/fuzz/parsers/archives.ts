import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import fc from 'fast-check'
import { fromBufferPromise } from 'yauzl'
import type { ArchiveAnswer, ArchivedFile } from '../../../../domain/tools/skills/archive/archive.ts'
import { isLeftOut } from '../../../../domain/tools/skills/archive/entries.ts'
import { MAX_UNPACKED_BYTES } from '../../../../domain/tools/skills/archive/limits.ts'
import { unpack } from '../../../../domain/tools/skills/archive/unpack.ts'
import { writeZip } from '../../../../lib/zip.ts'
import { skillMd, skillZip, type ZipEntry, zipOf } from '../../../support/zip.ts'
import type { Parser } from '../parser.ts'

const NAMES = [
  'a',
  'b/c',
  'b',
  'b/',
  '../x',
  '/x',
  'c:x',
  'a\\b',
  '.',
  'SKILL.md',
  'skill.md',
  'x/SKILL.md',
  '__MACOSX/a',
]

const named = {
  name: fc.oneof(fc.constantFrom(...NAMES), fc.string({ unit: 'grapheme', maxLength: 8 })),
  data: fc.string({ maxLength: 40 }),
}
/** Most entries are right but for their name; the others have a field or more that is wrong. */
const drawnEntry: fc.Arbitrary<ZipEntry> = fc.oneof(
  { weight: 3, arbitrary: fc.record(named) },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        ...named,
        method: fc.constantFrom(0, 8, 8, 8, 9),
        flags: fc.constantFrom(0, 0x800, 0x801, 8),
        mode: fc.constantFrom(0, 0o100644, 0o040755, 0o120777, 0o010644),
        size: fc.nat(50),
        packedSize: fc.nat(50),
        crc: fc.nat(2 ** 32 - 1),
        localName: fc.constantFrom('a', 'b/c'),
        offset: fc.nat(300),
        extra: fc.uint8Array({ maxLength: 12 }).map((bytes) => Buffer.from(bytes)),
      },
      { requiredKeys: ['name', 'data'] },
    ),
  },
)

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

const readAnswers = (archive: Buffer): Promise<ArchiveAnswer[]> => collect(unpack(archive))

/** Reads an archive with the library alone, which checks other things. */
async function readByLibrary(archive: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>()
  const zip = await fromBufferPromise(archive, { lazyEntries: true, validateEntrySizes: false })
  for await (const entry of zip.eachEntry()) {
    if (isLeftOut(entry.fileName) || entry.fileName.endsWith('/')) continue
    if (((entry.externalFileAttributes >>> 16) & 0o170000) === 0o040000) continue
    files.set(entry.fileName, await buffer(await zip.openReadStreamPromise(entry)))
  }
  return files
}

async function checkFiles(archive: Buffer, files: ArchivedFile[]): Promise<void> {
  for (const { path } of files) {
    const parts = path.split('/')
    assert(parts.every((part) => part !== '' && part !== '.' && part !== '..') && !/[\\\p{Cc}]/u.test(path), path)
  }
  assert.equal(new Set(files.map(({ path }) => path)).size, files.length)
  assert(files.reduce((sum, { bytes }) => sum + bytes.length, 0) <= MAX_UNPACKED_BYTES)
  const others = [...(await readByLibrary(archive)).values()]
  const sorted = (contents: Uint8Array[]) => contents.map((bytes) => Buffer.from(bytes).toString('hex')).sort()
  assert.deepEqual(sorted(files.map(({ bytes }) => bytes)), sorted(others))
}

/** Packs files with the service's own writer. */
async function packed(files: ArchivedFile[]): Promise<Buffer> {
  async function* entries() {
    for (const { path, bytes } of files) yield { path, changedAt: new Date(), chunks: [bytes] }
  }
  return Buffer.concat(await collect(writeZip(entries())))
}

const archive: Parser = {
  name: 'skill-archive',
  seeds: () => [
    skillZip('a'),
    zipOf([{ name: 'x/' }, { name: 'x/SKILL.md', data: skillMd('x') }, { name: 'x/größe', data: 'y'.repeat(200) }]),
    zipOf(
      [
        { name: 'SKILL.md', data: 'a', method: 0 },
        { name: '__MACOSX/', mode: 0o040755 },
      ],
      { comment: 'Hello' },
    ),
  ],
  words: [
    'PK\x01\x02',
    'PK\x03\x04',
    'PK\x05\x06',
    'PK\x06\x06',
    'PK\x06\x07',
    'SKILL.md',
    '../',
    'up',
    '\xff\xff\xff\xff',
  ],
  drawn: fc
    .tuple(fc.array(drawnEntry, { maxLength: 5 }), fc.boolean(), fc.nat(6))
    .map(([entries, hasSkill, count]) =>
      zipOf(hasSkill ? [{ name: 'SKILL.md', data: 'x' }, ...entries] : entries, count === 0 ? {} : { count }),
    ),
  check: async (input) => {
    const answers = await readAnswers(input)
    const last = answers.at(-1)
    assert(last !== undefined)
    if ('problem' in last) {
      assert(last.problem.length <= 1000 && last.problem.isWellFormed())
      return 'refused'
    }
    const files = answers.flatMap((answer) => ('file' in answer ? [answer.file] : []))
    await checkFiles(input, files)
    // Packed by the service, the files are the same, unless a longer path is a directory of them.
    const again = (await readAnswers(await packed(files))).flatMap((answer) => ('file' in answer ? [answer.file] : []))
    assert.deepEqual(again, files)
    return 'accepted'
  },
}

export const ARCHIVES: Parser[] = [archive]
