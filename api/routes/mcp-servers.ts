import { mcpServerEndpoints } from '../../contract/mcp-servers.ts'
import type { Deps } from '../../domain/deps.ts'
import { createServer } from '../../domain/tools/mcp-servers/create.ts'
import { deleteServer, getServer, listServers } from '../../domain/tools/mcp-servers/read.ts'
import { patchServer } from '../../domain/tools/mcp-servers/update.ts'
import { type Handle, reply } from '../http/handle.ts'

export function mcpServerRoutes(handle: Handle, deps: Deps): void {
  handle(mcpServerEndpoints.list, async ({ actor }) => reply(200, { data: await listServers(deps, actor) }))
  handle(mcpServerEndpoints.create, async ({ actor, body, once }) =>
    reply(201, await once((attempt) => createServer(deps, actor, body, attempt))),
  )
  handle(mcpServerEndpoints.get, async ({ actor, params }) =>
    reply(200, await getServer(deps, actor, params.server_id)),
  )
  handle(mcpServerEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchServer(deps, actor, params.server_id, body)),
  )
  handle(mcpServerEndpoints.delete, async ({ actor, params }) => {
    await deleteServer(deps, actor, params.server_id)
    return reply(204, undefined)
  })
}
