import type { ImageInfo, ImageUploadResponse } from '../../../contract/images.ts'
import type { ImageType } from '../../../lib/image-type.ts'
import { toId } from '../../kit/ids.ts'

/** Columns of an image without its bytes. */
export const INFO = {
  id: true,
  filename: true,
  contentType: true,
  sizeBytes: true,
  width: true,
  height: true,
  notedSessionId: true,
  createdAt: true,
} as const

export type ImageRow = {
  id: string
  filename: string
  contentType: string
  sizeBytes: number
  width: number
  height: number
  notedSessionId: string | null
  createdAt: Date
}

/** Returns the type of a stored image. Uploads store no others. */
export const typeOf = ({ contentType }: { contentType: string }): ImageType => contentType as ImageType

export const presentUpload = (row: ImageRow): ImageUploadResponse => ({
  id: row.id,
  filename: row.filename,
  content_type: typeOf(row),
  size_bytes: row.sizeBytes,
  created_at: row.createdAt.toISOString(),
})

export const presentImage = (row: ImageRow): ImageInfo => ({
  ...presentUpload(row),
  metadata: {
    width: row.width,
    height: row.height,
    ...(row.notedSessionId === null ? {} : { session_id: toId('session', row.notedSessionId) }),
  },
})
