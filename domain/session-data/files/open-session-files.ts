import { createFairQueue, type FairQueue } from '../../../lib/fair-queue.ts'
import { tooMany } from '../../kit/errors.ts'
import type { CallScope } from '../../kit/session-scope.ts'
import type { Deps } from '../deps.ts'
import { changeFiles } from './change.ts'
import type { WholeFile } from './file-store.ts'
import { grepFiles } from './grep/search.ts'
import { listFiles, listTree } from './list.ts'
import { statFile } from './read.ts'
import type { SessionFiles } from './session-files.ts'

/** Maximum number of tools' concurrent reads of whole files in a process. Each has 10 MiB in memory twice. */
const READS_AT_ONCE = 4
const READ_WAIT_MS = 20_000

export const createFileReads = (): FairQueue => createFairQueue(READS_AT_ONCE, READ_WAIT_MS)

const refuse = (): never => {
  throw tooMany('Too many files are being read; try again', 2)
}

/** Opens a session's files for a tool call. */
export function openSessionFiles(deps: Deps, scope: CallScope): SessionFiles {
  const { organizationId, sessionId, writer } = scope
  const read = async (path: string): Promise<WholeFile | undefined> => {
    const claim = { owner: await deps.owners.ownerOf(organizationId) }
    const readWhole = () => deps.fileStore.readWhole(organizationId, sessionId, [path])
    const [file] = await deps.fileReads.run(claim, readWhole, refuse, scope.signal)
    return file
  }
  return {
    maxBytes: deps.quotas.files.maxBytes,
    read,
    stat: (path) => statFile(deps, scope, path),
    list: (path, listing) => listFiles(deps, scope, path, listing),
    grep: (request) => grepFiles(deps, scope, request, scope.signal),
    listTree: () => listTree(deps, scope),
    markSeen: async ({ path, contentId }) => {
      await deps.db.$executeRaw`
        UPDATE session_files SET seen_content_id = content_id
        WHERE session_id = (SELECT id FROM sessions WHERE id = ${sessionId}::uuid AND organization_id = ${organizationId}::uuid)
          AND path = ${path} AND content_id = ${contentId}::uuid AND seen_content_id IS DISTINCT FROM content_id`
    },
    change: (changes) => changeFiles(deps, scope, changes),
    hasChanged: async () => {
      const { turnId, step } = writer
      const row = await deps.db.turnStep.findFirst({ where: { turnId, step, turn: { sessionId, organizationId } } })
      return row !== null && row.effect !== null
    },
  }
}
