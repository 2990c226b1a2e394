import type { FileInfo } from '../../contract/files.ts'
import { createOwnerPlaces, type OwnerPlaces } from '../../lib/owner-places.ts'
import { writeZip, type ZipEntry } from '../../lib/zip.ts'
import type { Deps } from '../deps.ts'
import { tooMany } from '../errors.ts'
import type { SessionScope } from '../session-scope.ts'
import { listFiles } from './list.ts'
import { openIfThere } from './read-beginning.ts'

/** Archives that a process writes at once, and those of one organization: each has up to 20 MB of names in memory. */
const ARCHIVES_AT_ONCE = 16
const ARCHIVES_OF_OWNER = 4
/** Size up to which files are read several at once, in pieces of `PIECE_BYTES`. */
const SMALL_BYTES = 256 * 1024
const PIECE_BYTES = 1024 * 1024

export const createZipPlaces = (): OwnerPlaces => createOwnerPlaces(ARCHIVES_AT_ONCE, ARCHIVES_OF_OWNER)

/**
 * Writes a session's files as a ZIP archive, while it is taken. A file has its content of the moment when it is read; one
 * that is deleted meanwhile is left out. `cut` breaks off a download whose place another owner needs: a client may take
 * it as slowly as it likes. Throws `too_many`.
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
  for await (const page of listFiles(deps, scope, '/', 'subtree')) {
    for (const info of page) if (info.is_directory) yield toEntry(info, [])
    const files = page.filter(({ is_directory }) => !is_directory)
    yield* readSmall(
      deps,
      scope,
      files.filter(({ size_bytes }) => size_bytes <= SMALL_BYTES),
    )
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
): AsyncGenerator<ZipEntry> {
  for (let left = infos; left.length > 0; ) {
    const paths = left.map(({ path }) => path)
    const files = new Map(
      (await fileStore.readFirst(organizationId, sessionId, paths, PIECE_BYTES)).map((file) => [file.path, file.bytes]),
    )
    const last = left.findLastIndex(({ path }) => files.has(path))
    if (last < 0) return
    for (const info of left.slice(0, last + 1)) {
      const bytes = files.get(info.path)
      if (bytes !== undefined) yield toEntry(info, [bytes])
    }
    left = left.slice(last + 1)
  }
}

/** Replaces what means something else to whoever unpacks on Windows: separators, drives, and ends that are dropped. */
const toName = (path: string): string => path.slice(1).replaceAll(/[\\:]|[. ]+(?=\/|$)/g, '_')

const toEntry = ({ path, is_directory, updated_at }: FileInfo, chunks: ZipEntry['chunks']): ZipEntry => ({
  path: toName(path) + (is_directory ? '/' : ''),
  changedAt: new Date(updated_at),
  chunks,
})
