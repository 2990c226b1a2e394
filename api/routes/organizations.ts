import { organizationEndpoints } from '../../contract/organizations.ts'
import type { Deps } from '../../domain/deps.ts'
import {
  createOrganization,
  deleteOrganization,
  getOrganization,
  listOrganizations,
  patchOrganization,
} from '../../domain/identity/organizations.ts'
import { toId } from '../../domain/kit/ids.ts'
import { clearCookie, ORGANIZATION, readCookie } from '../auth/cookies.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function organizationRoutes(handle: Handle, deps: Deps): void {
  handle(organizationEndpoints.list, async ({ actor, ctx }) =>
    answerList(ctx, deps.log, linesOf(listOrganizations(deps, actor))),
  )
  handle(organizationEndpoints.create, async ({ actor, body, once }) =>
    reply(201, await once((attempt) => createOrganization(deps, actor, body, attempt))),
  )
  handle(organizationEndpoints.get, async ({ actor, params }) =>
    reply(200, await getOrganization(deps, actor, params.org)),
  )
  handle(organizationEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchOrganization(deps, actor, params.org, body)),
  )
  handle(organizationEndpoints.delete, async ({ actor, params, ctx }) => {
    await deleteOrganization(deps, actor, params.org)
    if (readCookie(ctx, deps.auth, ORGANIZATION) === toId('org', params.org)) clearCookie(ctx, deps.auth, ORGANIZATION)
    return reply(204, undefined)
  })
}
