import type { FileInfo } from '../../../contract/files.ts'
import { type Pages, pages } from '../../kit/lists.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { type FileRow, fileColumns, presentFile } from './present.ts'
import type { Listing } from './session-files.ts'

/** Rows per page. A path has at most 1 KiB, so a page has at most 400 KiB. */
const ROWS_AT_ONCE = 200

/**
 * Lists a directory: its children, directories first and then by path, or its subtree by path. Empty for a missing
 * directory, which the caller has to check.
 */
export async function* listFiles(deps: Deps, scope: SessionScope, path: string, listing: Listing): Pages<FileInfo> {
  const directory = path === '/' ? '' : path
  if (listing === 'subtree') yield* listBelow(deps, scope, directory, { isDirectory: null, start: null })
  else {
    // Characters, as length() counts in SQL, not UTF-16 code units.
    const start = [...directory].length + 2
    yield* listBelow(deps, scope, directory, { isDirectory: true, start })
    yield* listBelow(deps, scope, directory, { isDirectory: false, start })
  }
}

/** Conditions of list_session_files (prisma/functions), which documents it. */
type Conditions = { isDirectory: boolean | null; start: number | null }

const listBelow = (
  deps: Deps,
  { organizationId, sessionId }: SessionScope,
  directory: string,
  { isDirectory, start }: Conditions,
): Pages<FileInfo> =>
  pages({
    atOnce: ROWS_AT_ONCE,
    read: async ({ after, take }: { after: FileRow | undefined; take: number }) => {
      const rows = await deps.db.$queryRaw<FileRow[]>`
        SELECT ${fileColumns}
        FROM list_session_files(
          ${organizationId}::uuid, ${sessionId}::uuid, ${after?.path ?? `${directory}/`}, ${`${directory}0`},
          ${isDirectory}::boolean, ${start}::integer, ${take}::integer
        ) f ORDER BY f.path`
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map(presentFile),
  })

/**
 * Lists a whole session in one snapshot; see `SessionFiles`. The database writes the JSON, to keep the main thread
 * free.
 */
export async function listTree(deps: Deps, { organizationId, sessionId }: SessionScope): Promise<string> {
  const [row] = await deps.db.$queryRaw<{ tree: string | null }[]>`
    SELECT json_agg(json_build_object('path', f.path, 'is_directory', f.is_directory, 'is_readonly', f.is_readonly,
      'size_bytes', f.size_bytes, 'content_id', f.content_id, 'updated_at', f.updated_at) ORDER BY f.path)::text AS tree
    FROM list_session_files(${organizationId}::uuid, ${sessionId}::uuid, '/', '0', NULL, NULL, NULL) f`
  return row?.tree ?? '[]'
}
