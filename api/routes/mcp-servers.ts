import { mcpReadingEndpoints } from '../../contract/mcp-reading.ts'
import { mcpServerEndpoints, mcpSignInEndpoints } from '../../contract/mcp-servers.ts'
import type { Deps } from '../../domain/deps.ts'
import { createServer } from '../../domain/tools/mcp-servers/create.ts'
import { beginGrant, endGrant, finishGrant, inOrganization } from '../../domain/tools/mcp-servers/grants/sign-in.ts'
import { deleteServer, getServer, listServers } from '../../domain/tools/mcp-servers/read.ts'
import { getPrompt, getResource, listPrompts, listResources } from '../../domain/tools/mcp-servers/reading.ts'
import { patchServer } from '../../domain/tools/mcp-servers/update.ts'
import { presentedLogins } from '../auth/authenticate.ts'
import { originOf } from '../auth/origin.ts'
import { createLimit } from '../auth/rate-limit.ts'
import { type Handle, NOT_STORED, reply } from '../http/handle.ts'
import { untilClosed } from '../http/until-closed.ts'

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
  signInRoutes(handle, deps)
  readingRoutes(handle, deps)
}

function readingRoutes(handle: Handle, deps: Deps): void {
  handle(mcpReadingEndpoints.resources, async ({ actor, ctx, params }) =>
    reply(200, await listResources(deps, { actor, signal: untilClosed(ctx) }, params.server_id)),
  )
  handle(mcpReadingEndpoints.resource, async ({ actor, ctx, params, query }) =>
    reply(200, await getResource(deps, { actor, signal: untilClosed(ctx) }, params.server_id, query.uri)),
  )
  handle(mcpReadingEndpoints.prompts, async ({ actor, ctx, params }) =>
    reply(200, await listPrompts(deps, { actor, signal: untilClosed(ctx) }, params.server_id)),
  )
  handle(mcpReadingEndpoints.prompt, async ({ actor, ctx, params, body }) =>
    reply(200, await getPrompt(deps, { actor, signal: untilClosed(ctx) }, params.server_id, body)),
  )
}

function signInRoutes(handle: Handle, deps: Deps): void {
  handle(mcpServerEndpoints.connect, async ({ actor, params }) =>
    reply(200, { authorization_url: await beginGrant(deps, actor, params.server_id) }, NOT_STORED),
  )
  handle(mcpServerEndpoints.visit, async ({ actor, params, query }) => {
    const visitor = await inOrganization(deps, actor, query.org)
    return reply(302, undefined, { Location: await beginGrant(deps, visitor, params.server_id), ...NOT_STORED })
  })
  handle(mcpServerEndpoints.disconnect, async ({ actor, params }) => {
    await endGrant(deps, actor, params.server_id)
    return reply(204, undefined)
  })
  handle(
    mcpSignInEndpoints.finish,
    async ({ ctx, query: { code, state, error, iss } }) => {
      const logins = deps.auth.mode === 'none' ? undefined : (await presentedLogins(deps, ctx)).logins
      const users = logins?.map(({ userId }) => userId)
      const name = await finishGrant(deps, { code, state, error, iss, users, origin: originOf(ctx) })
      return reply(200, pageOf(name), PAGE_HEADERS)
    },
    createLimit(deps, 'mcp-sign-in', 30),
  )
}

const PAGE_HEADERS = { 'Content-Type': 'text/html', 'Content-Security-Policy': "default-src 'none'", ...NOT_STORED }

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

const pageOf = (name: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Connected</title>
<p>You are signed in at ${name.replace(/[&<>"]/g, (sign) => ESCAPES[sign] ?? '')}. You can close this page.</p>
</html>
`
