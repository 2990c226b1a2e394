import type { FileInfo, FileStat, GrepRequest } from '../../../contract/files.ts'
import type { Pages } from '../../kit/lists.ts'
import type { Changed, FileChange, Repeated } from './file-change.ts'
import type { WholeFile } from './file-store.ts'
import type { Found } from './grep/found.ts'

/** The children of a directory, directories first and then by path, or its subtree by path. */
export type Listing = 'children' | 'subtree'

/** File or directory in a list of everything. A directory has no content. */
export type TreeEntry = {
  path: string
  is_directory: boolean
  is_readonly: boolean
  size_bytes: number
  content_id: string | null
  updated_at: string
}

/** A session's files as a tool call reads and writes them. Paths are valid and normalized. */
export type SessionFiles = {
  /** Maximum size of a file. Callers of `change` must not exceed it. */
  maxBytes: number
  /** Reads a file. Undefined for a missing file and a directory. */
  read(path: string): Promise<WholeFile | undefined>
  /** Lists everything, in one snapshot, by path: JSON of a list of TreeEntry, which the main thread need not parse. */
  listTree(): Promise<string>
  /** Throws `not_found`. */
  stat(path: string): Promise<FileStat>
  /** Lists a directory. Empty if it does not exist. */
  list(path: string, listing: Listing): Pages<FileInfo>
  /** Searches for lines; see `grepFiles`. */
  grep(request: GrepRequest): Promise<Found>
  /** Records that the agent knows the content of a file, which `edit_file` may then replace. */
  markSeen(file: Pick<WholeFile, 'path' | 'contentId'>): Promise<void>
  /** Changes files once per call; see `changeFiles`. */
  change(changes: FileChange[]): Promise<Changed | Repeated>
  /** Whether an earlier attempt of the call has changed files. */
  hasChanged(): Promise<boolean>
}

/** First bytes of a file, and the size of the whole. */
export type FileBeginning = { bytes: Buffer; sizeBytes: number }
