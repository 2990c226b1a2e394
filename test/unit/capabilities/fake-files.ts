import type { FileChange } from '../../../domain/session-data/files/file-change.ts'
import type { SessionFiles, TreeEntry } from '../../../domain/session-data/files/session-files.ts'

type Entry = { bytes: Buffer; contentId: string | null; isReadonly: boolean; isBase64: boolean }

/** Files in memory, which are changed as change_session_files does it, and by others in between. */
export type FakeFiles = SessionFiles & {
  /** Texts by path; null for a directory. */
  texts(): Record<string, string | null>
  changeNow(path: string, text: string): void
  changes: FileChange[][]
  entries: Map<string, Entry>
}

let last = 0
const toEntry = (text: string | Uint8Array | null): Entry => ({
  bytes: Buffer.from(text ?? ''),
  contentId: text === null ? null : `content ${++last}`,
  isReadonly: false,
  isBase64: false,
})

/** Creates files from texts by path; null makes a directory. Those at `/readonly…` are read-only. */
export function createFakeFiles(texts: Record<string, string | Uint8Array | null>): FakeFiles {
  const entries = new Map(Object.entries(texts).map(([path, text]) => [path, toEntry(text)]))
  for (const [path, entry] of entries) entry.isReadonly = path.startsWith('/readonly')
  const changes: FileChange[][] = []
  const unused = async () => {
    throw new Error('no command needs this')
  }
  return {
    ...{ entries, changes, maxBytes: 1_000_000 },
    ...{ stat: unused, list: unused as never, grep: unused, markSeen: unused },
    texts: () => {
      const sorted = [...entries].sort(([one], [other]) => (one < other ? -1 : 1))
      return Object.fromEntries(sorted.map(([path, { bytes, contentId }]) => [path, contentId && String(bytes)]))
    },
    changeNow: (path, text) => void entries.set(path, toEntry(text)),
    read: async (path) => {
      const entry = entries.get(path)
      return entry && { path, ...entry, contentId: entry.contentId ?? '', seenContentId: null }
    },
    listTree: async () => JSON.stringify([...entries].map(toTreeEntry).sort((a, b) => (a.path < b.path ? -1 : 1))),
    hasChanged: async () => changes.length > 0,
    change: async (list) => {
      changes.push(list)
      for (const change of list) apply(entries, change)
      return { outcome: 'changed', file: {} as never, deleted: 0 }
    },
  }
}

const toTreeEntry = ([path, { bytes, contentId, isReadonly }]: [string, Entry]): TreeEntry => ({
  path,
  is_directory: contentId === null,
  is_readonly: isReadonly,
  size_bytes: bytes.length,
  content_id: contentId,
  updated_at: '2026-01-02T03:04:05Z',
})

function apply(entries: Map<string, Entry>, change: FileChange): void {
  const path = 'path' in change ? change.path : change.to
  const found = entries.get(path)
  const below = (directory: string) => [...entries.keys()].filter((key) => key.startsWith(`${directory}/`))
  const refuse = (problem: string) => {
    throw new Error(`${problem}: ${JSON.stringify(change)}`)
  }
  if (change.was !== undefined && change.was !== (found?.contentId ?? null)) refuse('changed')
  if (change.do === 'check') return
  if (change.do === 'delete') {
    if (below(path).length > 0) refuse('not empty')
    entries.delete(path)
  } else if (change.do === 'make_directory') {
    if (found === undefined) entries.set(path, toEntry(null))
  } else if (change.do === 'move') {
    if (found !== undefined || !entries.has(change.from)) refuse('cannot be moved')
    for (const key of [change.from, ...below(change.from)]) {
      entries.set(path + key.slice(change.from.length), entries.get(key) as Entry)
      entries.delete(key)
    }
  } else if (change.do === 'write') {
    if (found?.contentId === null || found?.isReadonly) refuse('not writable')
    entries.set(path, { ...toEntry(change.bytes), isBase64: change.isBase64 })
  } else refuse('unknown')
}
