import { type FileHandle, mkdir, open, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { MAX_PAGES, PAGE_BYTES, type PageBatch, type PageSource, type State } from './sqlite-runner.ts'

/** File that is exactly a version of a database. */
export type Copy = { path: string; version: number; pageCount: number }

/** Copies of databases in a folder. Each database has one user at a time, who releases it; `forget` may come at any time. */
export type Copies = {
  /** Updates the copy from the record. Undefined when the database is gone. */
  use(source: PageSource): Promise<Copy | undefined>
  /** Records the file's new version. */
  advance(id: string, copy: Copy): void
  /** Removes the files that an ended process left beside the copy. */
  rollBack(id: string): Promise<void>
  /** Removes a copy that is in use. */
  discard(id: string): Promise<void>
  release(id: string): Promise<void>
  /** Removes a copy, at once or when it is released. */
  forget(id: string): Promise<void>
}

/** Error of pages in the record that cannot form a database. */
export class DamagedPages extends Error {
  override name = 'DamagedPages'
}

/** Maximum number of copies, which may all be small. */
const MAX_COPIES = 1000

/**
 * Removes the least recently used copies beyond `maxBytes`, and any copy that was not used for `idleMs`: another
 * process may have deleted its database.
 */
export function createCopies(folder: string, maxBytes: number, idleMs: number): Copies {
  /** In the order of their last use. */
  const copies = new Map<string, Copy>()
  const inUse = new Set<string>()
  const forgotten = new Set<string>()
  const timers = new Map<string, NodeJS.Timeout>()
  let files = 0

  const stopTimer = (id: string) => {
    clearTimeout(timers.get(id))
    timers.delete(id)
  }
  const discard = async (id: string) => {
    stopTimer(id)
    const copy = copies.get(id)
    copies.delete(id)
    if (copy !== undefined) await removeFiles(copy.path)
  }
  const makeRoom = async () => {
    let bytes = [...copies.values()].reduce((sum, { pageCount }) => sum + pageCount * PAGE_BYTES, 0)
    for (const [id, { pageCount }] of copies) {
      if (bytes <= maxBytes && copies.size <= MAX_COPIES) return
      if (inUse.has(id)) continue
      bytes -= pageCount * PAGE_BYTES
      await discard(id)
    }
  }
  const findIntact = async (id: string): Promise<Copy | undefined> => {
    const copy = copies.get(id)
    if (copy === undefined || (await isIntact(copy))) return copy
    await discard(id)
    return undefined
  }
  const update = async (source: PageSource): Promise<Copy | undefined> => {
    const copy = await findIntact(source.id)
    const state = await source.read(copy?.version ?? 0)
    if (copy !== undefined && state?.version === copy.version) return copy
    if (copy !== undefined && (state === undefined || state.version < copy.version)) {
      await discard(source.id)
      return state && update(source)
    }
    return state && write(source.id, copy?.path ?? join(folder, `${++files}.db`), state)
  }
  const write = async (id: string, path: string, state: State): Promise<Copy> => {
    // A partly written copy does not count.
    copies.delete(id)
    try {
      await writePages(path, state)
    } catch (error) {
      await removeFiles(path)
      throw error
    }
    return { path, version: state.version, pageCount: state.pageCount }
  }

  return {
    use: async (source) => {
      stopTimer(source.id)
      inUse.add(source.id)
      const copy = await update(source)
      if (copy === undefined) return undefined
      copies.delete(source.id)
      copies.set(source.id, copy)
      await makeRoom()
      return copy
    },
    advance: (id, copy) => copies.set(id, copy),
    rollBack: async (id) => {
      const copy = copies.get(id)
      // A new database may not even have its first page.
      if (copy?.version === 0) await discard(id)
      else if (copy !== undefined) await removeBeside(copy.path)
    },
    discard,
    release: async (id) => {
      inUse.delete(id)
      // Version 0: the script has not created the database.
      if (forgotten.delete(id) || copies.get(id)?.version === 0) await discard(id)
      else if (copies.has(id)) timers.set(id, setTimeout(() => discard(id).catch(() => {}), idleMs).unref())
    },
    forget: async (id) => {
      if (inUse.has(id)) forgotten.add(id)
      else await discard(id)
    },
  }
}

/** Whether the file still has its size. A cleaner of temporary files may have removed it. */
async function isIntact({ path, version, pageCount }: Copy): Promise<boolean> {
  if (version === 0) return true
  const { size } = await stat(path).catch(() => ({ size: -1 }))
  return size === pageCount * PAGE_BYTES
}

async function writePages(path: string, { pageCount, pages }: State): Promise<void> {
  if (pageCount > MAX_PAGES) throw new DamagedPages(`it has ${pageCount} pages`)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // Creates a missing file, and leaves the pages of an existing one.
  const file = await open(path, 'a+', 0o600).then((made) => made.close().then(() => open(path, 'r+')))
  try {
    for await (const batch of pages) await writeBatch(file, batch, pageCount)
    await file.truncate(pageCount * PAGE_BYTES)
  } finally {
    await file.close()
  }
}

/** Writes pages, each run of consecutive ones at once. */
async function writeBatch(file: FileHandle, { numbers, bytes }: PageBatch, pageCount: number): Promise<void> {
  if (bytes.length !== numbers.length * PAGE_BYTES) throw new DamagedPages('a page has another length')
  for (let from = 0; from < numbers.length; ) {
    const first = numbers[from] ?? 0
    let to = from + 1
    while (to < numbers.length && numbers[to] === first + (to - from)) to++
    if (first < 1) throw new DamagedPages(`a page has the number ${first}`)
    const run = bytes.subarray(from * PAGE_BYTES, to * PAGE_BYTES)
    if (first <= pageCount) await writeFully(file, run, (first - 1) * PAGE_BYTES)
    from = to
  }
}

async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += (await file.write(bytes, written, bytes.length - written, position + written)).bytesWritten
  }
}

const removeBeside = async (path: string): Promise<void> => {
  for (const end of ['-wal', '-shm', '-journal']) await rm(path + end, { force: true })
}

/** Removes a database's file, and SQLite's files beside it. */
export async function removeFiles(path: string): Promise<void> {
  await removeBeside(path)
  await rm(path, { force: true })
}
