import { z } from 'zod'
import { DateTime, listOf, sizeBytes, textUpTo } from './kit/common.ts'
import { fileResponses, group } from './kit/endpoint.ts'
import { SessionId } from './kit/ids.ts'

/** Most databases of a session. */
export const MAX_DATABASES = 10
/** Largest file of a database. */
const MAX_FILE_BYTES = 50 * 1024 * 1024

export const DatabaseName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, {
  error: 'must have 1 to 64 letters of A to Z, digits and underscores, and not begin with a digit',
})

export const Database = z
  .object({
    name: z.string(),
    size_bytes: sizeBytes,
    page_count: z.int().min(0),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'DatabaseInfoResponse' })
export type Database = z.infer<typeof Database>

const CreateDatabaseRequest = z.object({ name: DatabaseName }).meta({ id: 'CreateDatabaseRequest' })

const Column = z
  .object({
    name: z.string(),
    type: z.string().meta({ description: 'The declared type; empty without one.' }),
    notnull: z.boolean(),
    pk: z.boolean(),
    default_value: z.string().nullable().meta({ description: 'The SQL of the default value.' }),
  })
  .meta({ id: 'DatabaseColumn' })

const Table = z
  .object({
    name: z.string(),
    columns: z.array(Column),
    row_count: z.int().min(0).nullable().meta({ description: 'Null for a view, and when it cannot be counted.' }),
  })
  .meta({ id: 'DatabaseTable' })

export const Schema = z
  .object({
    database: z.string(),
    tables: z.array(Table),
    truncated: z.boolean().optional().meta({ description: 'True if tables were left out.' }),
  })
  .meta({ id: 'SchemaResponse' })
export type Schema = z.infer<typeof Schema>

const MAX_SQL_BYTES = 1_000_000
const MAX_PARAMS = 1000

const QueryDatabaseRequest = z
  .object({
    sql: textUpTo(MAX_SQL_BYTES)
      .refine((sql) => sql.trim() !== '', { error: 'must not be empty' })
      .meta({ description: 'One read-only statement, such as a SELECT.' }),
    params: z
      .array(z.union([z.string(), z.number(), z.boolean(), z.null()]))
      .max(MAX_PARAMS, { error: `must have at most ${MAX_PARAMS} values` })
      .nullish()
      .meta({ description: 'The values of the ? in the SQL, in their order.' }),
  })
  .meta({ id: 'QueryDatabaseRequest' })

const DatabaseRows = z
  .object({
    columns: z.array(z.string()).meta({ description: 'Names may repeat.' }),
    rows: z.array(z.array(z.union([z.string(), z.number(), z.null()]))).meta({
      description: 'At most 1,000, and 1 MB. Blobs are base64; integers beyond 2^53 and infinities are strings.',
    }),
    row_count: z.int().min(0),
    truncated: z.boolean().meta({ description: 'True if rows were left out.' }),
  })
  .meta({ id: 'DatabaseRows' })
export type DatabaseRows = z.infer<typeof DatabaseRows>

const ofSession = z.object({ session_id: SessionId })
const ofDatabase = z.object({ session_id: SessionId, name: DatabaseName })

export const databaseEndpoints = group(
  { tag: 'databases', path: '/v1/sessions/{session_id}/databases', access: 'member' },
  {
    list: {
      operationId: 'listDatabases',
      method: 'GET',
      summary: 'Lists databases, newest first',
      params: ofSession,
      responses: { 200: listOf(Database) },
    },
    create: {
      operationId: 'createDatabase',
      method: 'POST',
      summary: 'Creates an empty database',
      description: 'A session has at most 10. An agent can create its own.',
      params: ofSession,
      body: CreateDatabaseRequest,
      creates: true,
      responses: { 201: Database },
    },
    get: {
      operationId: 'getDatabase',
      method: 'GET',
      at: '/{name}',
      summary: 'Gets a database',
      params: ofDatabase,
      responses: { 200: Database },
    },
    delete: {
      operationId: 'deleteDatabase',
      method: 'DELETE',
      at: '/{name}',
      summary: 'Deletes a database',
      params: ofDatabase,
      responses: { 204: null },
    },
    getFile: {
      operationId: 'getDatabaseFile',
      method: 'GET',
      at: '/{name}/file',
      summary: 'Downloads a database as a SQLite file',
      description: 'The download breaks off if the database changes meanwhile.',
      params: ofDatabase,
      responses: fileResponses('application/octet-stream', 'The database in the file format of SQLite 3.'),
      errors: [409],
    },
    putFile: {
      operationId: 'putDatabaseFile',
      method: 'PUT',
      at: '/{name}/file',
      summary: 'Creates or replaces a database from a SQLite file',
      description:
        'The file has at most 50 MiB. 422 if it is not a SQLite database, or has virtual tables that SQL cannot create here.',
      params: ofDatabase,
      raw: { maxBytes: MAX_FILE_BYTES, inMemory: true },
      responses: { 200: Database, 201: Database },
      errors: [409, 422],
    },
    schema: {
      operationId: 'getDatabaseSchema',
      method: 'GET',
      at: '/{name}/schema',
      summary: 'Describes the tables and views of a database',
      description:
        'Sorted by name, with columns and number of rows. 422 if the database is damaged, or counting its rows takes more than 30 seconds.',
      params: ofDatabase,
      responses: { 200: Schema },
      errors: [422],
    },
    query: {
      operationId: 'queryDatabase',
      method: 'POST',
      at: '/{name}/query',
      summary: 'Reads rows of a database',
      description:
        "Runs one read-only statement within an agent's limits: 30 seconds. 422 if the SQL is wrong, refused, or exceeds a limit.",
      params: ofDatabase,
      body: QueryDatabaseRequest,
      responses: { 200: DatabaseRows },
      errors: [422],
    },
  },
)
