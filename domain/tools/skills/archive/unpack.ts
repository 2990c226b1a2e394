import { isUtf8 } from 'node:buffer'
import { crc32, inflateRawSync } from 'node:zlib'
import { type Entry, fromBufferPromise, getFileNameLowLevel, type ZipFile } from 'yauzl'
import { isText } from '../../../session-data/files/content.ts'
import type { ArchiveAnswer } from './archive.ts'
import { checkName, directoriesOf, isLeftOut, placeEntries } from './entries.ts'
import { MAX_ENTRY_BYTES, MAX_LISTED, MAX_UNPACKED_BYTES } from './limits.ts'
import { ArchiveProblem, problemOf } from './problem.ts'

/**
 * Unpacks a ZIP archive of a skill: yields its files one by one, then its directories. Ends with a problem if the
 * archive is damaged, exceeds a limit or has other entries. Sizes are counted in unpacked bytes.
 */
export async function* unpack(archive: Uint8Array): AsyncGenerator<ArchiveAnswer> {
  try {
    yield* unpackValid(Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength))
  } catch (error) {
    if (!(error instanceof ArchiveProblem)) throw error
    yield { problem: error.message }
  }
}

async function* unpackValid(archive: Buffer): AsyncGenerator<ArchiveAnswer> {
  const { zip, entries } = await listEntries(archive)
  const paths = placeEntries(entries)
  checkOverlap(archive, entries)
  const placed = entries.map((entry, index) => ({ ...entry, path: paths[index] ?? '' }))
  let left = MAX_UNPACKED_BYTES
  for (const entry of placed) {
    if (entry.isDirectory) continue
    const bytes = await readEntry(archive, zip, entry, left)
    left -= bytes.length
    // A copy, because a message includes the whole buffer of its bytes.
    yield { file: { path: entry.path, bytes: new Uint8Array(bytes), isBase64: !isText(bytes) } }
  }
  yield { directories: directoriesOf(placed) }
}

type ZipEntry = { name: string; isDirectory: boolean; header: Entry }

/** Lists the entries without ignored ones. Names are decoded here, because yauzl decodes and checks only some. */
async function listEntries(archive: Buffer): Promise<{ zip: ZipFile; entries: ZipEntry[] }> {
  const options = { lazyEntries: true, decodeStrings: false, validateEntrySizes: false }
  const zip = await unlessDamaged(fromBufferPromise(archive, options))
  const entries: ZipEntry[] = []
  if (zip.entryCount > MAX_LISTED) throw new ArchiveProblem(`must have at most ${MAX_LISTED} entries of any kind`)
  for await (const header of damagedAsProblems(zip.eachEntry())) {
    const name = nameOf(header)
    if (isLeftOut(name)) continue
    checkName(name)
    checkKind(name, header)
    entries.push({ name, isDirectory: name.endsWith('/') || kindOf(header) === KIND.directory, header })
  }
  checkCount(archive, zip)
  return { zip, entries }
}

/** Reads a valid UTF-8 name as UTF-8, even without its flag, as macOS writes it. */
function nameOf({ fileNameRaw, generalPurposeBitFlag, extraFields }: Entry): string {
  const flags = isUtf8(fileNameRaw) ? generalPurposeBitFlag | UTF8_FLAG : generalPurposeBitFlag
  return getFileNameLowLevel(flags, fileNameRaw, extraFields, true)
}

const UTF8_FLAG = 0x800
const ENCRYPTED_FLAG = 0x1
const STORED = 0
const DEFLATED = 8
/** Bits of a Unix mode for the kind of a file. Systems without them have 0. */
const KIND = { mask: 0o170000, none: 0, file: 0o100000, directory: 0o040000, link: 0o120000 }

const kindOf = ({ externalFileAttributes }: Entry): number => (externalFileAttributes >>> 16) & KIND.mask

function checkKind(name: string, header: Entry): void {
  const { generalPurposeBitFlag, compressionMethod } = header
  const kind = kindOf(header)
  if (kind === KIND.link) throw problemOf(name, 'is a link')
  if (![KIND.none, KIND.file, KIND.directory].includes(kind)) throw problemOf(name, 'is neither a file nor a directory')
  if ((generalPurposeBitFlag & ENCRYPTED_FLAG) !== 0) throw problemOf(name, 'is encrypted')
  if (compressionMethod !== STORED && compressionMethod !== DEFLATED) {
    throw problemOf(name, `is compressed by method ${compressionMethod}; only Deflate is known`)
  }
}

const CENTRAL_HEADER = 0x02014b50

/** Throws ArchiveProblem if the archive has more entries than it declares. */
function checkCount(archive: Buffer, { readEntryCursor }: ZipFile): void {
  // The type of yauzl is wrong.
  const end = Number(readEntryCursor)
  if (end + 4 <= archive.length && archive.readUInt32LE(end) === CENTRAL_HEADER) {
    throw new ArchiveProblem('has more entries than it says')
  }
}

const LOCAL_HEADER_BYTES = 30

/**
 * Throws ArchiveProblem if entries share bytes, which would be unpacked twice, or if an entry has a different name in
 * its own header, where another program would see another file.
 */
function checkOverlap(archive: Buffer, entries: readonly ZipEntry[]): void {
  const overlap = 'must not have entries that overlap or reach beyond its end'
  const offsetOf = ({ header }: ZipEntry) => header.relativeOffsetOfLocalHeader
  let end = 0
  for (const entry of [...entries].sort((one, other) => offsetOf(one) - offsetOf(other))) {
    const { name, header } = entry
    const start = offsetOf(entry)
    const nameStart = start + LOCAL_HEADER_BYTES
    if (start < end || nameStart > archive.length) throw new ArchiveProblem(overlap)
    const nameEnd = nameStart + archive.readUInt16LE(start + 26)
    end = nameEnd + archive.readUInt16LE(start + 28) + header.compressedSize
    if (end > archive.length) throw new ArchiveProblem(overlap)
    if (!archive.subarray(nameStart, nameEnd).equals(header.fileNameRaw)) {
      throw problemOf(name, 'has another name in its own header')
    }
  }
}

async function readEntry(
  archive: Buffer,
  zip: ZipFile,
  { name, header }: ZipEntry,
  leftBytes: number,
): Promise<Uint8Array> {
  const { fileDataStart } = await unlessDamaged(zip.readLocalFileHeaderPromise(header, { minimal: true }), name)
  const packed = archive.subarray(fileDataStart, fileDataStart + header.compressedSize)
  const bytes = header.compressionMethod === STORED ? packed : inflate(name, packed)
  if (bytes.length > MAX_ENTRY_BYTES) throw tooLarge(name)
  if (bytes.length > leftBytes) {
    throw problemOf(name, `is too much: all entries together must have at most ${MAX_UNPACKED_BYTES} bytes`)
  }
  if (bytes.length !== header.uncompressedSize) {
    throw problemOf(name, `has ${bytes.length} bytes, and its header says ${header.uncompressedSize}`)
  }
  if (crc32(bytes) !== header.crc32) throw problemOf(name, 'is damaged: its checksum is wrong')
  return bytes
}

/** Unpacks an entry, and stops at the limit. */
function inflate(name: string, packed: Uint8Array): Buffer {
  try {
    return inflateRawSync(packed, { maxOutputLength: MAX_ENTRY_BYTES })
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(name) : problemOf(name, DAMAGED)
  }
}

const tooLarge = (name: string) => problemOf(name, `has more than ${MAX_ENTRY_BYTES} bytes`)
const DAMAGED = 'is damaged'
const MAX_REASON = 200

/** yauzl has no error class for a faulty archive; all of its errors mean that. */
const damaged = (error: unknown, name?: string): ArchiveProblem => {
  const reason = (error instanceof Error ? error.message : 'no reason').slice(0, MAX_REASON)
  return name === undefined
    ? new ArchiveProblem(`is not a ZIP archive that can be read: ${reason}`)
    : problemOf(name, `${DAMAGED}: ${reason}`)
}

const unlessDamaged = <T>(result: Promise<T>, name?: string): Promise<T> =>
  result.catch((error: unknown) => {
    throw damaged(error, name)
  })

async function* damagedAsProblems<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]()
  for (;;) {
    const next = await unlessDamaged(iterator.next())
    if (next.done) return
    yield next.value
  }
}
