import { crc32, deflateRawSync } from 'node:zlib'

/** Entry of an archive. Fields other than name and data are written unchanged, even if they are wrong. */
export type ZipEntry = {
  name: string | Buffer
  data?: string | Uint8Array
  /** Compression method; 8 compresses. */
  method?: number
  /** General purpose flags. Default: UTF-8. */
  flags?: number
  /** Bytes in the archive, instead of the compressed `data`. */
  packed?: Uint8Array
  packedSize?: number
  size?: number
  crc?: number
  /** Unix mode. */
  mode?: number
  extra?: Buffer
  /** Name in the entry's own header. */
  localName?: string
  /** Offset of the local header. */
  offset?: number
}

const UTF8 = 0x800

/** Writes a ZIP archive. `count` is the number of entries that it claims to have. */
export function zipOf(entries: ZipEntry[], { count = entries.length, comment = '' } = {}): Buffer {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const entry of entries) {
    const { local, central } = writeEntry(entry, at)
    locals.push(local)
    directory.push(central)
    at += local.length
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0)
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(count % 0x10000, 8)
  end.writeUInt16LE(count % 0x10000, 10)
  end.writeUInt32LE(size, 12)
  end.writeUInt32LE(at, 16)
  end.writeUInt16LE(comment.length, 20)
  return Buffer.concat([...locals, ...directory, end, Buffer.from(comment)])
}

function writeEntry(entry: ZipEntry, at: number): { local: Buffer; central: Buffer } {
  const name = Buffer.from(entry.name)
  const localName = Buffer.from(entry.localName ?? entry.name)
  const data = Buffer.from(entry.data ?? '')
  const method = entry.method ?? 8
  const packed = entry.packed ?? (method === 8 ? deflateRawSync(data) : data)
  const extra = entry.extra ?? Buffer.alloc(0)
  const common = Buffer.alloc(26)
  common.writeUInt16LE(20, 0)
  common.writeUInt16LE(entry.flags ?? UTF8, 2)
  common.writeUInt16LE(method, 4)
  common.writeUInt32LE(entry.crc ?? crc32(data), 10)
  common.writeUInt32LE(entry.packedSize ?? packed.length, 14)
  common.writeUInt32LE(entry.size ?? data.length, 18)
  common.writeUInt16LE(name.length, 22)
  common.writeUInt16LE(extra.length, 24)
  const local = Buffer.from(common)
  local.writeUInt16LE(localName.length, 22)
  const rest = Buffer.alloc(14)
  rest.writeUInt32LE(((entry.mode ?? 0) << 16) >>> 0, 6)
  rest.writeUInt32LE(entry.offset ?? at, 10)
  return {
    local: Buffer.concat([Buffer.from('PK\x03\x04'), local, localName, extra, packed]),
    // Made by version 3.0 on Unix.
    central: Buffer.concat([Buffer.from('PK\x01\x02\x1e\x03'), common, rest, name, extra]),
  }
}

/** Returns the archive of a small skill. */
export const skillZip = (name: string): Buffer => zipOf([{ name: 'SKILL.md', data: skillMd(name) }])

/** Returns the text of a small SKILL.md. */
export const skillMd = (name: string, body = 'Do it.', more = ''): string =>
  `---\nname: ${name}\ndescription: Does ${name}\n${more}---\n${body}\n`
