import { memberEndpoints } from '../../contract/members.ts'
import type { Deps } from '../../domain/deps.ts'
import { patchMember, removeMember } from '../../domain/identity/members/change.ts'
import { listMembers } from '../../domain/identity/members/list.ts'
import { toId } from '../../domain/kit/ids.ts'
import { clearCookie, ORGANIZATION, readCookie } from '../auth/cookies.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function memberRoutes(handle: Handle, deps: Deps): void {
  handle(memberEndpoints.list, async ({ actor, params, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listMembers(deps, actor, params.org, query))),
  )
  handle(memberEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchMember(deps, actor, params, body)),
  )
  handle(memberEndpoints.delete, async ({ actor, params, ctx }) => {
    await removeMember(deps, actor, params)
    const isChosen = readCookie(ctx, deps.auth, ORGANIZATION) === toId('org', params.org)
    if (isChosen && params.user_id === actor.userId) clearCookie(ctx, deps.auth, ORGANIZATION)
    return reply(204, undefined)
  })
}
