import { databaseEndpoints } from '../../contract/databases.ts'
import type { Deps } from '../../domain/deps.ts'
import { createDatabase } from '../../domain/session-data/databases/create.ts'
import { deleteDatabase } from '../../domain/session-data/databases/delete.ts'
import { openDatabaseFile, putDatabaseFile } from '../../domain/session-data/databases/file.ts'
import { queryDatabase } from '../../domain/session-data/databases/query.ts'
import { getDatabase, listDatabases } from '../../domain/session-data/databases/read.ts'
import { getSchema } from '../../domain/session-data/databases/schema.ts'
import { type Handle, reply } from '../http/handle.ts'
import { untilClosed } from '../http/until-closed.ts'

export function databaseRoutes(handle: Handle, deps: Deps): void {
  handle(databaseEndpoints.list, async ({ actor, params }) =>
    reply(200, { data: await listDatabases(deps, actor, params.session_id) }),
  )
  handle(databaseEndpoints.create, async ({ actor, params, body, once }) =>
    reply(201, await once((attempt) => createDatabase(deps, actor, { ...params, ...body }, attempt))),
  )
  handle(databaseEndpoints.get, async ({ actor, params }) => reply(200, await getDatabase(deps, actor, params)))
  handle(databaseEndpoints.delete, async ({ actor, params }) => {
    await deleteDatabase(deps, actor, params)
    return reply(204, undefined)
  })
  handle(databaseEndpoints.getFile, async ({ actor, params }) => {
    const file = await openDatabaseFile(deps, actor, params)
    const served = { ...file, contentType: 'application/octet-stream', name: `${params.name}.sqlite` }
    return reply(200, served, { 'Cache-Control': 'private, no-cache' })
  })
  handle(databaseEndpoints.putFile, async ({ actor, params, body, ctx }) => {
    const { database, isNew } = await putDatabaseFile(deps, actor, params, body.file.chunks, untilClosed(ctx))
    return reply(isNew ? 201 : 200, database)
  })
  handle(databaseEndpoints.schema, async ({ actor, params, ctx }) =>
    reply(200, await getSchema(deps, actor, params, untilClosed(ctx))),
  )
  handle(databaseEndpoints.query, async ({ actor, params, body, ctx }) => {
    const statement = { sql: body.sql, params: body.params ?? undefined }
    return reply(200, await queryDatabase(deps, actor, params, statement, untilClosed(ctx)))
  })
}
