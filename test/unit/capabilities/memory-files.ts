import { randomUUID } from 'node:crypto'
import type { FileInfo } from '../../../contract/files.ts'
import { notFound } from '../../../domain/kit/errors.ts'
import type { Write } from '../../../domain/session-data/files/file-change.ts'
import type { WholeFile } from '../../../domain/session-data/files/file-store.ts'
import type { SessionFiles } from '../../../domain/session-data/files/session-files.ts'

type Stored = WholeFile & { isDirectory?: boolean }
const PAGE = 200

/**
 * Files in memory, for what tools make of them: without parents, quotas and rules, which belong to Postgres. `pages`
 * counts the pages of lists that were read.
 */
export function createMemoryFiles(
  contents: Record<string, string | Buffer | null> = {},
  attempt: Partial<Attempt> = {},
) {
  const stored = new Map<string, Stored>()
  const put = (path: string, content: string | Buffer, more: Partial<Stored> = {}) =>
    stored.set(path, {
      ...{ path, contentId: randomUUID(), seenContentId: null, isBase64: false, isReadonly: false },
      ...{ ...stored.get(path), bytes: Buffer.from(content), ...more, contentId: randomUUID() },
    })
  for (const [path, content] of Object.entries(contents)) put(path, content ?? '', { isDirectory: content === null })
  const find = (path: string) => (stored.get(path)?.isDirectory ? undefined : stored.get(path))
  const counted = { pages: 0 }
  const files: SessionFiles = {
    maxBytes: 1000,
    read: async (path) => find(path),
    stat: async (path) => {
      const file = stored.get(path)
      if (file === undefined && path !== '/') throw notFound('File')
      return describe(path, file)
    },
    async *list() {
      const all = [...stored.values()].map((file) => describe(file.path, file))
      for (let start = 0; start < all.length; start += PAGE) {
        counted.pages++
        yield all.slice(start, start + PAGE)
      }
    },
    listTree: async () => '[]',
    grep: async () => ({ results: [], isTruncated: false }),
    markSeen: async ({ path, contentId }) => {
      const file = stored.get(path)
      if (file?.contentId === contentId) file.seenContentId = contentId
    },
    change: async ([change]) => {
      if (attempt.isRepeated) return { outcome: 'repeated' }
      if (change?.do === 'delete') return { outcome: 'changed', file: row, deleted: stored.delete(change.path) ? 1 : 0 }
      const { path, bytes, isBase64 } = change as Write
      put(path, Buffer.from(bytes), { isBase64 })
      const file = stored.get(path)
      if (file !== undefined) file.seenContentId = file.contentId
      return { outcome: 'changed', file: row, deleted: 0 }
    },
    hasChanged: async () => attempt.hasChanged ?? attempt.isRepeated ?? false,
  }
  return { files, put, find, counted }
}

/** Earlier attempts of the call: seen beforehand, or only by the change itself. */
type Attempt = { hasChanged: boolean; isRepeated: boolean }

const NOW = new Date(0).toISOString()
// No tool looks at it.
const row = {} as never

const describe = (path: string, file: Stored | undefined): FileInfo => ({
  ...{ id: randomUUID(), session_id: `session_${'0'.repeat(32)}` as FileInfo['session_id'] },
  ...{ path, name: path.slice(path.lastIndexOf('/') + 1) },
  ...{ is_directory: file?.isDirectory ?? path === '/', is_readonly: file?.isReadonly ?? false },
  ...{ size_bytes: file?.bytes.length ?? 0, created_at: NOW, updated_at: NOW },
})
