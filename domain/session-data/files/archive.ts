import { createHash } from 'node:crypto'
import type { FileInfo } from '../../../contract/files.ts'
import { createOwnerPlaces, type OwnerPlaces } from '../../../lib/owner-places.ts'
import { writeZip, type ZipEntry } from '../../../lib/zip.ts'
import { tooMany } from '../../kit/errors.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { listFiles } from './list.ts'
import { openIfThere } from './read-beginning.ts'

/**
 * Maximum number of archives written at once, by a process and for one owner. Each has up to 40 MB of names in memory.
 */
const ARCHIVES_AT_ONCE = 16
const ARCHIVES_OF_OWNER = 4
/** Size up to which files are read several at once, in pieces of `PIECE_BYTES`. */
const SMALL_BYTES = 256 * 1024
const PIECE_BYTES = 1024 * 1024

export const createZipPlaces = (): OwnerPlaces => createOwnerPlaces(ARCHIVES_AT_ONCE, ARCHIVES_OF_OWNER)

/**
 * Writes a session's files as a ZIP archive, as the client takes it. Each file has its content at the time of reading,
 * and deleted files are omitted. `cut` aborts a download, however slow its client, when another owner needs its place.
 * Throws `too_many`.
 */
export async function* archiveFiles(deps: Deps, scope: SessionScope, cut: () => void): AsyncGenerator<Uint8Array> {
  const leave = deps.zipPlaces.take({ owner: await deps.owners.ownerOf(scope.organizationId), cut })
  if (typeof leave === 'string') throw tooMany('Too many archives are being downloaded; try again', 5)
  try {
    yield* writeZip(readTree(deps, scope))
  } finally {
    leave()
  }
}

async function* readTree(deps: Deps, scope: SessionScope): AsyncGenerator<ZipEntry> {
  const nameOf = createNames()
  const toEntry = (info: FileInfo, chunks: ZipEntry['chunks']): ZipEntry => ({
    path: nameOf(info),
    changedAt: new Date(info.updated_at),
    chunks,
  })
  for await (const page of listFiles(deps, scope, '/', 'subtree')) {
    for (const info of page) if (info.is_directory) yield toEntry(info, [])
    const files = page.filter(({ is_directory }) => !is_directory)
    const small = files.filter(({ size_bytes }) => size_bytes <= SMALL_BYTES)
    for await (const { info, bytes } of readSmall(deps, scope, small)) yield toEntry(info, [bytes])
    for (const info of files.filter(({ size_bytes }) => size_bytes > SMALL_BYTES)) {
      const opened = await openIfThere(deps, scope, info.path)
      if (opened !== undefined && opened !== 'directory') yield toEntry(info, opened.chunks)
    }
  }
}

async function* readSmall(
  { fileStore }: Deps,
  { organizationId, sessionId }: SessionScope,
  infos: FileInfo[],
): AsyncGenerator<{ info: FileInfo; bytes: Uint8Array }> {
  for (let left = infos; left.length > 0; ) {
    const paths = left.map(({ path }) => path)
    const files = new Map(
      (await fileStore.readFirst(organizationId, sessionId, paths, PIECE_BYTES)).map((file) => [file.path, file.bytes]),
    )
    const last = left.findLastIndex(({ path }) => files.has(path))
    if (last < 0) return
    for (const info of left.slice(0, last + 1)) {
      const bytes = files.get(info.path)
      if (bytes !== undefined) yield { info, bytes }
    }
    left = left.slice(last + 1)
  }
}

/** Replaces characters with a meaning in Windows: separators, colons of drives, and dots and spaces at the end. */
const toSafe = (name: string): string => name.replaceAll(/[\\:]|[. ]+$/g, '_')

/**
 * Returns a function that names entries. A name equal to an earlier entry's, ignoring case, gets a number, so that
 * unpacking loses no file. A directory is named before its contents.
 */
function createNames(): (info: FileInfo) => string {
  /** Names of renamed directories by their path, and the next numbers of names. The keys are hashes. */
  const renamed = new Map<string, string>()
  const numbers = new Map<string, number>()
  const keyOf = (name: string) => hashOf(name.normalize('NFC').toLowerCase())
  const unique = (name: string): string => {
    const key = keyOf(name)
    for (let number = numbers.get(key); number !== undefined; number++) {
      const numbered = name.replace(/(\.[^./]*)?$/, (end) => ` (${number})${end}`)
      if (numbers.has(keyOf(numbered))) continue
      numbers.set(key, number + 1).set(keyOf(numbered), 2)
      return numbered
    }
    numbers.set(key, 2)
    return name
  }
  return ({ path, is_directory }) => {
    const at = path.lastIndexOf('/')
    const directory = renamed.get(hashOf(path.slice(0, at))) ?? path.slice(0, at)
    const name = unique(`${directory}/${toSafe(path.slice(at + 1))}`)
    if (is_directory && name !== path) renamed.set(hashOf(path), name)
    return name.slice(1) + (is_directory ? '/' : '')
  }
}

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64').slice(0, 24)
