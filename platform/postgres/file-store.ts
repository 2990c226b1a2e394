import type pg from 'pg'
import type { FileStore, WholeFile } from '../../domain/session-data/files/file-store.ts'

const CHANGE = `SELECT change_session_files(
  $1::uuid, $2::uuid, $3::uuid, $4::text, $5::bigint, $6::jsonb, $7::bytea, $8::integer, $9::bigint) AS answer`
/** The space of the files of session $2, which names their chunks. */
const SPACE = 'coalesce((SELECT space_id FROM session_file_totals WHERE session_id = $2::uuid), $2::uuid)'
/** The bytes of a file `f`, of a session or of a skill. Nothing of a skill is outside its directory. */
const CHUNKS = `(
    SELECT c.start, c.bytes FROM session_file_chunks c
    WHERE c.session_id = ${SPACE} AND c.content_id = f.content_id
    UNION ALL
    SELECT 0, k.bytes FROM skill_files k WHERE k.id = f.content_id AND starts_with(f.path, '/skills/')
  ) c`
/** A row for each chunk; an empty file has one without bytes. */
const READ_WHOLE = `SELECT f.path, f.content_id AS "contentId", f.seen_content_id AS "seenContentId",
    f.is_base64 AS "isBase64", f.is_readonly AS "isReadonly", c.bytes
  FROM visible_session_files($1::uuid, $2::uuid, $3::text[]) f LEFT JOIN LATERAL ${CHUNKS} ON true
  WHERE NOT f.is_directory
  ORDER BY f.path, c.start`
/** The first file, whatever its size, and those behind it up to $4 bytes. */
const READ_FIRST = `WITH f AS (
    SELECT f.*, sum(f.size_bytes) OVER (ORDER BY f.path ROWS UNBOUNDED PRECEDING) AS up_to
    FROM visible_session_files($1::uuid, $2::uuid, $3::text[]) f
    WHERE NOT f.is_directory
  )
  SELECT f.path, f.content_id AS "contentId", f.seen_content_id AS "seenContentId",
    f.is_base64 AS "isBase64", f.is_readonly AS "isReadonly", c.bytes
  FROM f LEFT JOIN LATERAL ${CHUNKS} ON true
  WHERE f.up_to <= $4::bigint OR f.up_to = f.size_bytes
  ORDER BY f.path, c.start`
/** Bytes of a content that are read at once. A smaller content is read whole, even while it is replaced. */
const PART_BYTES = 1024 * 1024
const READ_PART = `SELECT c.start, c.bytes FROM sessions s JOIN session_file_chunks c ON c.session_id = ${SPACE}
  WHERE s.id = $2::uuid AND s.organization_id = $1::uuid AND c.content_id = $3::uuid
    AND c.start >= $4::integer AND c.start < $4::integer + ${PART_BYTES}
  UNION ALL
  SELECT $4::integer, substring(f.bytes FROM $4::integer + 1 FOR ${PART_BYTES}) FROM skill_files f
  WHERE f.id = $3::uuid AND f.size_bytes > $4::integer
    AND EXISTS (SELECT FROM active_session_skills($1::uuid, $2::uuid) k WHERE k.id = f.skill_id)
  ORDER BY start`

type ChunkRow = Omit<WholeFile, 'bytes'> & { bytes: Buffer | null }

/** Reads and writes files by the driver itself, because Prisma makes several texts of all bytes. */
export const createFileStore = (pool: pg.Pool): FileStore => ({
  change: async ({ organizationId, sessionId, writer, changes, contents, maxCount, maxTotalBytes }) => {
    const attempt = [writer?.turnId, writer?.step, writer?.fence]
    const values = [organizationId, sessionId, ...attempt, changes, contents, maxCount, maxTotalBytes]
    const { rows } = await pool.query<{ answer: unknown }>({ name: 'change_files', text: CHANGE, values })
    return rows[0]?.answer
  },
  readWhole: async (organizationId, sessionId, paths) => {
    const values = [organizationId, sessionId, paths]
    const { rows } = await pool.query<ChunkRow>({ name: 'read_files', text: READ_WHOLE, values })
    return joinChunks(rows)
  },
  readFirst: async (organizationId, sessionId, paths, maxBytes) => {
    const values = [organizationId, sessionId, paths, maxBytes]
    const { rows } = await pool.query<ChunkRow>({ name: 'read_first_files', text: READ_FIRST, values })
    return joinChunks(rows)
  },
  readPart: async (organizationId, sessionId, contentId, start) => {
    const values = [organizationId, sessionId, contentId, start]
    const { rows } = await pool.query<{ bytes: Buffer }>({ name: 'read_file_part', text: READ_PART, values })
    return rows.length === 0 ? undefined : Buffer.concat(rows.map(({ bytes }) => bytes))
  },
})

/** Joins the chunks of each file, which follow one another. */
function joinChunks(rows: ChunkRow[]): WholeFile[] {
  const files: (Omit<WholeFile, 'bytes'> & { chunks: Buffer[] })[] = []
  for (const { bytes, ...file } of rows) {
    if (files.at(-1)?.path !== file.path) files.push({ ...file, chunks: [] })
    if (bytes !== null) files.at(-1)?.chunks.push(bytes)
  }
  return files.map(({ chunks, ...file }) => ({ ...file, bytes: Buffer.concat(chunks) }))
}
