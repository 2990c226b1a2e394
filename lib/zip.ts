import { crc32 } from 'node:zlib'

/** File, or a directory, whose path ends with a slash. Paths are relative. */
export type ZipEntry = { path: string; changedAt: Date; chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array> }

/** UTF-8 names. */
const UTF8 = 0x800
/** Sizes and checksum follow the bytes. */
const SIZES_FOLLOW = 8
const DEFLATED = 8
const VERSION = 20
const MADE_ON_UNIX = (3 << 8) | VERSION
const MODE_OF_DIRECTORY = 0o40755
const MODE_OF_FILE = 0o100644
/** Most bytes of a stored block (RFC 1951, 3.2.4). */
const BLOCK_BYTES = 0xffff
const LAST_BLOCK = Buffer.from([1, 0, 0, 0xff, 0xff])

/**
 * Writes a ZIP archive piece by piece (APPNOTE 6.3, without ZIP64). Contents are deflated as stored blocks: that costs
 * no time, and sizes may follow, which readers of streams accept only of deflated entries. Throws RangeError beyond
 * 65,535 entries or 4 GiB.
 */
export async function* writeZip(entries: AsyncIterable<ZipEntry>): AsyncGenerator<Uint8Array> {
  const directory: Buffer[] = []
  let at = 0
  for await (const { path, changedAt, chunks } of entries) {
    const isDirectory = path.endsWith('/')
    const entry = { path: Buffer.from(path), isDirectory, changedAt, offset: at, ...NOTHING }
    const head = localHeader(entry)
    yield head
    at += head.length
    if (!isDirectory) {
      for await (const chunk of chunks) {
        entry.crc = crc32(chunk, entry.crc)
        entry.size += chunk.length
        const blocks = storedBlocks(chunk)
        entry.packedSize += blocks.length
        yield blocks
      }
      entry.packedSize += LAST_BLOCK.length
      yield Buffer.concat([LAST_BLOCK, sizesOf(entry, 0x08074b50)])
      at += entry.packedSize + 16
    }
    directory.push(centralHeader(entry))
  }
  yield* directory
  yield endOf(directory, at)
}

const NOTHING = { crc: 0, size: 0, packedSize: 0 }
type Written = { path: Buffer; isDirectory: boolean; changedAt: Date; offset: number } & typeof NOTHING

function storedBlocks(chunk: Uint8Array): Buffer {
  const blocks: Uint8Array[] = []
  for (let at = 0; at < chunk.length; at += BLOCK_BYTES) {
    const part = chunk.subarray(at, at + BLOCK_BYTES)
    const head = Buffer.alloc(5)
    head.writeUInt16LE(part.length, 1)
    head.writeUInt16LE(part.length ^ 0xffff, 3)
    blocks.push(head, part)
  }
  return Buffer.concat(blocks)
}

/** Returns what both headers of an entry have, up to its sizes. */
function commonFields({ isDirectory, changedAt }: Written): Buffer {
  const fields = Buffer.alloc(10)
  fields.writeUInt16LE(VERSION, 0)
  fields.writeUInt16LE(isDirectory ? UTF8 : UTF8 | SIZES_FOLLOW, 2)
  fields.writeUInt16LE(isDirectory ? 0 : DEFLATED, 4)
  // MS-DOS time, in UTC: the format has no zone.
  const seconds = changedAt.getUTCSeconds() >> 1
  fields.writeUInt16LE((changedAt.getUTCHours() << 11) | (changedAt.getUTCMinutes() << 5) | seconds, 6)
  const year = changedAt.getUTCFullYear() - 1980
  fields.writeUInt16LE((year << 9) | ((changedAt.getUTCMonth() + 1) << 5) | changedAt.getUTCDate(), 8)
  return fields
}

function sizesOf({ crc, size, packedSize }: typeof NOTHING, signature?: number): Buffer {
  return Buffer.concat(
    [signature, crc, packedSize, size].flatMap((value) => (value === undefined ? [] : [uint32(value)])),
  )
}

function localHeader(entry: Written): Buffer {
  const lengths = Buffer.alloc(4)
  lengths.writeUInt16LE(entry.path.length, 0)
  return Buffer.concat([uint32(0x04034b50), commonFields(entry), sizesOf(NOTHING), lengths, entry.path])
}

function centralHeader(entry: Written): Buffer {
  const { path, isDirectory, offset } = entry
  const made = Buffer.alloc(2)
  made.writeUInt16LE(MADE_ON_UNIX)
  const rest = Buffer.alloc(18)
  rest.writeUInt16LE(path.length, 0)
  rest.writeUInt16LE(isDirectory ? MODE_OF_DIRECTORY : MODE_OF_FILE, 12)
  rest.writeUInt32LE(offset, 14)
  return Buffer.concat([uint32(0x02014b50), made, commonFields(entry), sizesOf(entry), rest, path])
}

function endOf(directory: Buffer[], offset: number): Buffer {
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(directory.length, 8)
  end.writeUInt16LE(directory.length, 10)
  end.writeUInt32LE(
    directory.reduce((sum, { length }) => sum + length, 0),
    12,
  )
  end.writeUInt32LE(offset, 16)
  return end
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
