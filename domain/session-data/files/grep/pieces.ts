import { pages } from '../../../kit/lists.ts'
import type { SessionScope } from '../../../kit/session-scope.ts'
import type { Deps } from '../../deps.ts'
import type { WholeFile } from '../file-store.ts'

/** Maximum bytes of files that are read and matched at once. A single file may be larger. */
const PIECE_BYTES = 2 * 1024 * 1024
/** Number of paths read at once, of at most 1 KiB each. */
const PATHS_AT_ONCE = 500

/**
 * Reads the files of a session by path, a piece at a time. `choose` receives the paths, page by page and at least once,
 * and returns the paths to read.
 */
export async function* readPieces(
  deps: Deps,
  scope: SessionScope,
  choose: (paths: string[]) => Promise<string[]>,
): AsyncGenerator<WholeFile[]> {
  const { organizationId, sessionId } = scope
  let isChecked = false
  for await (const page of pathsOf(deps, scope)) {
    isChecked = true
    let paths = await choose(page)
    while (paths.length > 0) {
      // Sizes count as of now: a file may have grown since it was listed.
      const files = await deps.fileStore.readFirst(organizationId, sessionId, paths, PIECE_BYTES)
      const last = files.at(-1)
      if (last === undefined) break
      yield files
      paths = paths.slice(paths.indexOf(last.path) + 1)
    }
  }
  if (!isChecked) await choose([])
}

const pathsOf = (deps: Deps, { organizationId, sessionId }: SessionScope) =>
  pages({
    atOnce: PATHS_AT_ONCE,
    read: async ({ after, take }: { after: { path: string } | undefined; take: number }) => {
      const rows = await deps.db.$queryRaw<{ path: string }[]>`
        SELECT f.path FROM list_session_files(
          ${organizationId}::uuid, ${sessionId}::uuid, ${after?.path ?? '/'}, '0', false, NULL, ${take}::integer
        ) f ORDER BY f.path`
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) => rows.map(({ path }) => path),
  })
