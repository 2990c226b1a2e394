import { invitationEndpoints } from '../../contract/invitations.ts'
import type { Deps } from '../../domain/deps.ts'
import { createInvitation } from '../../domain/identity/invitations/create.ts'
import { joinOrganization } from '../../domain/identity/invitations/join.ts'
import { listInvitations } from '../../domain/identity/invitations/list.ts'
import { presentCreatedInvitation } from '../../domain/identity/invitations/token.ts'
import { withdrawInvitation } from '../../domain/identity/invitations/withdraw.ts'
import { type Handle, NOT_STORED, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function invitationRoutes(handle: Handle, deps: Deps): void {
  handle(invitationEndpoints.list, async ({ actor, params, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listInvitations(deps, actor, params.org, query))),
  )
  handle(invitationEndpoints.create, async ({ actor, credential, params, body, once }) => {
    const loginId = credential?.id
    // The answer stored for repetitions of the request does not contain the token.
    const made = await once((attempt) => createInvitation(deps, actor, params.org, body, { ...attempt, loginId }))
    return reply(201, presentCreatedInvitation(deps, made), NOT_STORED)
  })
  handle(invitationEndpoints.delete, async ({ actor, params }) => {
    await withdrawInvitation(deps, actor, params)
    return reply(204, undefined)
  })
  handle(invitationEndpoints.join, async ({ actor, body }) => reply(200, await joinOrganization(deps, actor, body)))
}
