import type pg from 'pg'
import type { ImageChunks } from '../../domain/session-data/images/chunk-store.ts'

/** Does not wait for the disk: the commit that completes the image writes everything before it, too. */
const INSERT = `INSERT INTO image_chunks (image_id, start, bytes)
  SELECT $1::uuid, $2::integer, $3::bytea FROM set_config('synchronous_commit', 'off', true)`
const READ = 'SELECT start, bytes FROM image_chunks WHERE image_id = $1 AND start <= $2 ORDER BY start DESC LIMIT 1'

type Row = { start: number; bytes: Buffer }

/** Stores and reads chunks by the driver itself, because Prisma makes several texts of all bytes. */
export const createImageChunks = (pool: pg.Pool): ImageChunks => ({
  insert: async (imageId, start, bytes) => {
    await pool.query({ name: 'insert_image_chunk', text: INSERT, values: [imageId, start, bytes] })
  },
  find: async (imageId, at) => {
    const { rows } = await pool.query<Row>({ name: 'read_image_chunk', text: READ, values: [imageId, at] })
    return rows[0]
  },
})
