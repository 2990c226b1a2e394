import { userEndpoints } from '../../contract/users.ts'
import type { Deps } from '../../domain/deps.ts'
import { getOrganization } from '../../domain/identity/organizations.ts'
import { deleteCurrentUser, listUsers } from '../../domain/identity/users.ts'
import { clearCookies, setOrganization } from '../auth/cookies.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function userRoutes(handle: Handle, deps: Deps): void {
  handle(userEndpoints.list, async ({ actor, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(listUsers(deps, actor, query.search))),
  )
  handle(userEndpoints.deleteMe, async ({ actor, ctx }) => {
    await deleteCurrentUser(deps, actor)
    clearCookies(ctx, deps.auth)
    return reply(204, undefined)
  })
  handle(userEndpoints.switchOrganization, async ({ actor, body, ctx }) => {
    const { id } = await getOrganization(deps, actor, body.org_id)
    setOrganization(ctx, deps.auth, id)
    return reply(200, { success: true, org_id: id })
  })
}
