import { organizationEndpoints } from '../../contract/organizations.ts'
import { userEndpoints } from '../../contract/users.ts'
import type { Deps } from '../../domain/deps.ts'
import {
  createOrganization,
  getOrganization,
  listOrganizations,
  patchOrganization,
} from '../../domain/organizations.ts'
import { listUsers } from '../../domain/users.ts'
import { setOrganization } from '../auth/cookies.ts'
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
  handle(userEndpoints.list, async ({ actor, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(listUsers(deps, actor, query.search))),
  )
  handle(userEndpoints.switchOrganization, async ({ actor, body, ctx }) => {
    const { id } = await getOrganization(deps, actor, body.org_id)
    setOrganization(ctx, deps.auth, id)
    return reply(200, { success: true, org_id: id })
  })
}
