import type { FileEncoding, FileInfo, FileStat } from '../../../contract/files.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'
import type { ChangedRow } from './file-change.ts'

/** A file or directory, without its content. */
export type FileRow = {
  id: string
  sessionId: string
  path: string
  isDirectory: boolean
  isReadonly: boolean
  sizeBytes: number
  createdAt: Date
  updatedAt: Date
}

/** SQL for the columns of a FileRow, of the table `f`. */
export const fileColumns = Prisma.sql`f.id, f.session_id AS "sessionId", f.path, f.is_directory AS "isDirectory",
  f.is_readonly AS "isReadonly", f.size_bytes AS "sizeBytes", f.created_at AS "createdAt", f.updated_at AS "updatedAt"`

export const presentStat = (row: Omit<FileRow, 'id' | 'sessionId'>): FileStat => ({
  path: row.path,
  name: row.path.slice(row.path.lastIndexOf('/') + 1) || '/',
  is_directory: row.isDirectory,
  is_readonly: row.isReadonly,
  size_bytes: row.sizeBytes,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

export const presentFile = (row: FileRow): FileInfo => ({
  id: row.id,
  session_id: toId('session', row.sessionId),
  ...presentStat(row),
})

export const presentChanged = (row: ChangedRow): FileInfo =>
  presentFile({
    id: row.id,
    sessionId: row.session_id,
    path: row.path,
    isDirectory: row.is_directory,
    isReadonly: row.is_readonly,
    sizeBytes: row.size_bytes,
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
  })

export const encodingOf = (isBase64: boolean): FileEncoding => (isBase64 ? 'base64' : 'text')
