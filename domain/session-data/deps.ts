import type { FairQueue } from '../../lib/fair-queue.ts'
import type { OwnerPlaces } from '../../lib/owner-places.ts'
import type { Deps as Below } from '../identity/deps.ts'
import type { SessionMutex } from '../kit/session-mutex.ts'
import type { DatabaseStore } from './databases/database-store.ts'
import type { SqliteRunner } from './databases/sqlite-runner/sqlite-runner.ts'
import type { FileStore } from './files/file-store.ts'
import type { GrepThreads } from './files/grep/threads.ts'
import type { ImageChunks } from './images/chunk-store.ts'

export type Deps = Below & {
  fileStore: FileStore
  /** Changes of a session's files, one at a time in this process. */
  fileMutex: SessionMutex
  /** Queue of this process for reading whole files for tools. */
  fileReads: FairQueue
  /** Places of this process for downloads of all files of a session. */
  zipPlaces: OwnerPlaces
  /** Queue of this process for searches in files. */
  grepSlots: FairQueue
  threads: { greps: GrepThreads }
  databaseStore: DatabaseStore
  /** Runs the SQL of databases of sessions. */
  sqliteRunner: SqliteRunner
  /** Bytes of uploaded images. */
  imageChunks: ImageChunks
  quotas: { files: FileQuotas; images: ImageQuotas; storage: StorageQuotas }
}

/** Maximum size of a file; maximum number and size of a session's files and directories together. */
export type FileQuotas = { maxBytes: number; maxCount: number; maxTotalBytes: number }

/** Maximum size of an image; maximum number and size of an organization's images together. */
export type ImageQuotas = { maxBytes: number; maxCount: number; maxTotalBytes: number }

/** Maximum number of a session's values, and of its secrets; maximum stored size of both together. */
export type StorageQuotas = { maxCount: number; maxTotalBytes: number }
