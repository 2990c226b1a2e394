import type { JoinedOrganization, JoinRequest } from '../../../contract/invitations.ts'
import type { Invitation as InvitationRow, Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { conflict, notFound, quotaExceeded } from '../../kit/errors.ts'
import { hashToken } from '../auth/derived-token.ts'
import type { Deps } from '../deps.ts'
import { lockMembers } from '../members/lock.ts'
import { presentOrganization } from '../organizations.ts'
import { INVITATION_TOKEN } from './token.ts'

/** Maximum number of organizations that a user may join. */
const MAX_MEMBERSHIPS = 1000

type Used = Pick<InvitationRow, 'organizationId' | 'role'>

/**
 * Makes the caller a member of the invitation's organization, and uses up the invitation. Throws `not_found` for an
 * invalid token, and `conflict` for a member and beyond MAX_MEMBERSHIPS; the invitation then remains.
 */
export async function joinOrganization(deps: Deps, actor: Actor, { token }: JoinRequest): Promise<JoinedOrganization> {
  const { userId } = actor
  if (!INVITATION_TOKEN.test(token)) throw notFound('Invitation')
  return deps.db.$transaction(async (tx) => {
    const { organizationId, role } = await useInvitation(tx, hashToken(token))
    await tx.$queryRaw`SELECT 1 FROM users WHERE id = ${userId}::uuid FOR NO KEY UPDATE`
    const { count } = await tx.member.createMany({ data: [{ userId, organizationId, role }], skipDuplicates: true })
    if (count === 0) throw conflict('You are a member of this organization already')
    if ((await tx.member.count({ where: { userId } })) > MAX_MEMBERSHIPS) {
      throw quotaExceeded(`You are a member of ${MAX_MEMBERSHIPS} organizations, which is the limit; leave one first`)
    }
    await audit(tx, { ...actor, organizationId }, { action: 'member.join', target: userId, details: { role } })
    const organization = await tx.organization.findUniqueOrThrow({ where: { id: organizationId } })
    return { ...presentOrganization(organization), role }
  })
}

/** Deletes the invitation, under the lock that all changes of the organization's members take. Throws `not_found`. */
async function useInvitation(tx: Prisma.TransactionClient, hash: Uint8Array<ArrayBuffer>): Promise<Used> {
  const found = await tx.invitation.findUnique({ where: { hash } })
  if (found === null) throw notFound('Invitation')
  await lockMembers(tx, found.organizationId)
  const [used] = await tx.$queryRaw<Used[]>`
    DELETE FROM invitations WHERE hash = ${hash} AND expires_at > now()
    RETURNING organization_id AS "organizationId", role`
  if (used === undefined) throw notFound('Invitation')
  return used
}
