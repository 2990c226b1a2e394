import { type FileHandle, open } from 'node:fs/promises'
import { PAGE_BYTES, type PageBatch } from './sqlite-runner.ts'

/**
 * Reads the pages that the one transaction in a WAL has changed. The format is described in
 * https://www.sqlite.org/walformat.html: a header, and frames of a header and a page. Undefined when nothing was committed.
 *
 * Frames are taken as they are, without their checksums, because a WAL is new for each connection, a connection commits
 * once at most, and the process that wrote it still has it open. Frames left behind by the rollback of a savepoint were
 * overwritten, or come after the commit frame; a failed transaction has no commit frame.
 */
export async function readChanges(path: string): Promise<(PageBatch & { pageCount: number }) | undefined> {
  const file = await openIfExists(path)
  if (file === undefined) return undefined
  try {
    const commit = await findCommit(file)
    return commit && { pageCount: commit.pageCount, ...(await readPages(file, commit.frames)) }
  } finally {
    await file.close()
  }
}

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const FRAME_BYTES = FRAME_HEADER_BYTES + PAGE_BYTES
/** About a megabyte. */
const FRAMES_AT_ONCE = 256
/** Offset of the salts in the header. Each frame repeats them. */
const SALTS_AT = 16
const SALTS_IN_FRAME_AT = 8
const SALTS_BYTES = 8

type Commit = {
  pageCount: number
  /** Index of the last frame of each page, by the page's number. */
  frames: Map<number, number>
}

async function findCommit(file: FileHandle): Promise<Commit | undefined> {
  const header = await readFully(file, 0, HEADER_BYTES)
  if (header.length < HEADER_BYTES) return undefined
  const salts = header.subarray(SALTS_AT, SALTS_AT + SALTS_BYTES)
  const frames = new Map<number, number>()
  for await (const { index, frame } of readFrames(file)) {
    if (!frame.subarray(SALTS_IN_FRAME_AT, SALTS_IN_FRAME_AT + SALTS_BYTES).equals(salts)) return undefined
    frames.set(frame.readUInt32BE(0), index)
    // Size of the database after the commit; 0 except in the commit frame.
    const pageCount = frame.readUInt32BE(4)
    if (pageCount > 0) return { pageCount, frames }
  }
  return undefined
}

async function readPages(file: FileHandle, lastFrames: Map<number, number>): Promise<PageBatch> {
  const numbers = [...lastFrames.keys()].sort((one, other) => one - other)
  const places = new Map(numbers.map((number, place) => [number, place * PAGE_BYTES]))
  const bytes = Buffer.alloc(numbers.length * PAGE_BYTES)
  const end = Math.max(...lastFrames.values())
  for await (const { index, frame } of readFrames(file)) {
    const number = frame.readUInt32BE(0)
    if (lastFrames.get(number) === index) frame.copy(bytes, places.get(number), FRAME_HEADER_BYTES)
    if (index === end) break
  }
  return { numbers, bytes }
}

async function* readFrames(file: FileHandle): AsyncGenerator<{ index: number; frame: Buffer }> {
  for (let index = 0; ; ) {
    const frames = await readFully(file, HEADER_BYTES + index * FRAME_BYTES, FRAMES_AT_ONCE * FRAME_BYTES)
    if (frames.length < FRAME_BYTES) return
    for (let at = 0; at + FRAME_BYTES <= frames.length; at += FRAME_BYTES) {
      yield { index: index++, frame: frames.subarray(at, at + FRAME_BYTES) }
    }
  }
}

/** Reads up to `length` bytes, fewer at the end of the file. */
async function readFully(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return buffer.subarray(0, filled)
}

async function openIfExists(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
