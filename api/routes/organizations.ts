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
import { setOrganization } from '../cookies.ts'
import { type Handle, reply } from '../handle.ts'
import { answerList, linesOf } from '../json-list.ts'

export function organizationRoutes(handle: Handle, deps: Deps): void {
  handle(organizationEndpoints.list, async ({ scope, ctx }) =>
    answerList(ctx, deps.log, linesOf(listOrganizations(deps, scope))),
  )
  handle(organizationEndpoints.create, async ({ scope, body, once }) =>
    reply(201, await once((run) => createOrganization(deps, scope, body, run))),
  )
  handle(organizationEndpoints.get, async ({ scope, params }) =>
    reply(200, await getOrganization(deps, scope, params.org)),
  )
  handle(organizationEndpoints.patch, async ({ scope, params, body }) =>
    reply(200, await patchOrganization(deps, scope, params.org, body)),
  )
  handle(userEndpoints.list, async ({ scope, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(listUsers(deps, scope, query.search))),
  )
  handle(userEndpoints.switchOrganization, async ({ scope, body, ctx }) => {
    const { id } = await getOrganization(deps, scope, body.org_id)
    setOrganization(ctx, deps.auth, id)
    return reply(200, { success: true, org_id: id })
  })
}
