import { setTimeout as sleep } from 'node:timers/promises'
import type { FileEncoding, FileInfo, FileStat } from '../../../contract/files.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { noSession, notFound } from '../../kit/errors.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { encodingOf, type FileRow, fileColumns, presentFile, presentStat } from './present.ts'

type FoundRow = FileRow & { isBase64: boolean; contentId: string | null }
type Found = { createdAt: Date; row: FoundRow | undefined }

/** Finds a session and its file in `files`, a FROM clause. Throws `not_found` for the session. */
async function find(deps: Deps, { organizationId, sessionId }: SessionScope, files: Prisma.Sql): Promise<Found> {
  const rows = await deps.db.$queryRaw<(FoundRow & { sessionCreatedAt: Date })[]>`
    SELECT ${fileColumns}, f.is_base64 AS "isBase64", f.content_id AS "contentId", s.created_at AS "sessionCreatedAt"
    FROM sessions s LEFT JOIN ${files} f ON f.session_id = s.id
    WHERE s.id = ${sessionId}::uuid AND s.organization_id = ${organizationId}::uuid`
  const [row] = rows
  if (row === undefined) throw noSession()
  return { createdAt: row.sessionCreatedAt, row: row.id === null ? undefined : row }
}

function findByPath(deps: Deps, scope: SessionScope, path: string): Promise<Found> {
  const { organizationId, sessionId } = scope
  return find(
    deps,
    scope,
    Prisma.sql`visible_session_files(${organizationId}::uuid, ${sessionId}::uuid, ARRAY[${path}])`,
  )
}

/**
 * Returns the session's own file or directory with this id; undefined if it does not exist. Throws `not_found` for the
 * session.
 */
export async function findFileById(deps: Deps, scope: SessionScope, id: string): Promise<FileInfo | undefined> {
  const ownFiles = Prisma.sql`(SELECT * FROM session_files WHERE session_id = ${scope.sessionId}::uuid AND id = ${id}::uuid)`
  const { row } = await find(deps, scope, ownFiles)
  return row && presentFile(row)
}

/** Describes a file or directory below the root. Throws `not_found`. */
export async function describeFile(deps: Deps, scope: SessionScope, path: string): Promise<FileInfo> {
  const { row } = await findByPath(deps, scope, path)
  if (row === undefined) throw notFound('File')
  return presentFile(row)
}

/** Describes a file or directory, also the root. Throws `not_found`. */
export async function statFile(deps: Deps, scope: SessionScope, path: string): Promise<FileStat> {
  const { row, createdAt } = await findByPath(deps, scope, path)
  if (row !== undefined) return presentStat(row)
  if (path !== '/') throw notFound('File')
  const root = { path, isDirectory: true, isReadonly: false, sizeBytes: 0 }
  return presentStat({ ...root, createdAt, updatedAt: createdAt })
}

/** A file with its content, which is read on demand. Each content has its own `contentId`. */
export type OpenedFile = {
  info: FileInfo
  encoding: FileEncoding
  contentId: string
  chunks: AsyncIterable<Uint8Array>
}

/** Maximum look-ups of a file whose content is replaced before it can be read. */
const MAX_REPLACED = 30
const RETRY_PAUSE_MS = 20

/** Opens a file. 'directory' if the path is one. Throws `not_found`. */
export async function openFile(deps: Deps, scope: SessionScope, path: string): Promise<OpenedFile | 'directory'> {
  for (let replaced = 0; ; replaced++) {
    const { row } = await findByPath(deps, scope, path)
    if (path === '/' || row?.isDirectory) return 'directory'
    if (row === undefined) throw notFound('File')
    const opened = { info: presentFile(row), encoding: encodingOf(row.isBase64), contentId: row.contentId ?? row.id }
    if (row.contentId === null || row.sizeBytes === 0) return { ...opened, chunks: noChunks() }
    const content = { contentId: row.contentId, sizeBytes: row.sizeBytes }
    const first = await readPart(deps, scope, content, 0)
    if (first !== undefined) return { ...opened, chunks: readParts(deps, scope, content, first) }
    if (replaced === MAX_REPLACED) throw new Error('The content of a file is not there.')
    await sleep(RETRY_PAUSE_MS)
  }
}

async function* noChunks(): AsyncGenerator<Uint8Array> {}

type Content = { contentId: string; sizeBytes: number }

const readPart = (deps: Deps, { organizationId, sessionId }: SessionScope, { contentId }: Content, start: number) =>
  deps.fileStore.readPart(organizationId, sessionId, contentId, start)

async function* readParts(
  deps: Deps,
  scope: SessionScope,
  content: Content,
  first: Uint8Array,
): AsyncGenerator<Uint8Array> {
  yield first
  for (let at = first.length; at < content.sizeBytes; ) {
    const part = await readPart(deps, scope, content, at)
    if (part === undefined) throw new Error('a file was replaced while it was read')
    yield part
    at += part.length
  }
}
