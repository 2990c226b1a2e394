import type { Role } from '../../../contract/auth.ts'
import type { OrganizationId, UserId } from '../../../contract/kit/ids.ts'
import type { Member, UpdateMemberRequest } from '../../../contract/members.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { conflict, forbidden, notFound } from '../../kit/errors.ts'
import { ANONYMOUS_USER_UUID, DEFAULT_ORGANIZATION_UUID } from '../../kit/ids.ts'
import { passOn } from '../../kit/owners.ts'
import type { Deps } from '../deps.ts'
import { requireMember } from '../organizations.ts'
import { lockMembers } from './lock.ts'
import { type MemberRow, presentMember } from './present.ts'
import { mayManage, rolesBeyond } from './roles.ts'
import { visibleMembers } from './select.ts'

type Path = { org: OrganizationId; user_id: UserId }

/**
 * Changes a member's role, and withdraws the member's invitations that the new role could not make. Throws `not_found`,
 * `forbidden` when the caller's role does not allow it, and `conflict` for the last owner.
 */
export const patchMember = (deps: Deps, actor: Actor, path: Path, { role }: UpdateMemberRequest): Promise<Member> =>
  deps.db.$transaction(async (tx) => {
    const { own, member } = await readBoth(deps, tx, actor, path)
    if (own.role === 'member') throw forbidden('Only owners and administrators of the organization may change roles')
    if (!mayManage(own.role, member.role) || !mayManage(own.role, role)) {
      throw forbidden('Only owners of the organization may make a member an owner or change the role of an owner')
    }
    const { userId, organizationId } = member
    if (role !== 'owner') {
      await requireOtherOwner(deps, tx, member)
      await passOn(tx, organizationId, userId)
    }
    await tx.invitation.deleteMany({ where: { createdBy: userId, organizationId, role: { in: rolesBeyond(role) } } })
    const where = { userId_organizationId: { userId, organizationId } }
    const details = { role, former_role: member.role }
    await audit(tx, { ...actor, organizationId }, { action: 'member.update', target: userId, details })
    return presentMember(await tx.member.update({ where, data: { role }, include: { user: true } }))
  })

/**
 * Ends a membership, and deletes the member's API keys and invitations there. The caller may always leave, except as
 * the last owner. Throws as patchMember does.
 */
export const removeMember = (deps: Deps, actor: Actor, path: Path): Promise<void> =>
  deps.db.$transaction(async (tx) => {
    const { own, member } = await readBoth(deps, tx, actor, path)
    if (member.userId !== actor.userId) requireAbove(own.role, member.role)
    await requireOtherOwner(deps, tx, member)
    const { userId, organizationId } = member
    await passOn(tx, organizationId, userId)
    await audit(tx, { ...actor, organizationId }, { action: 'member.remove', target: userId })
    await tx.member.delete({ where: { userId_organizationId: { userId, organizationId } } })
  })

function requireAbove(own: Role, role: Role): void {
  if (own === 'member') throw forbidden('Only owners and administrators of the organization may remove others')
  if (!mayManage(own, role)) throw forbidden('Only owners of the organization may remove an owner')
}

/** Locks the organization's members and returns the caller and the member of the path. Throws `not_found`. */
async function readBoth(deps: Deps, tx: Prisma.TransactionClient, actor: Actor, { org, user_id }: Path) {
  await lockMembers(tx, org)
  const own = await requireMember({ db: tx }, actor, org)
  const member = await tx.member.findFirst({
    where: { userId: user_id, organizationId: org, AND: visibleMembers(deps) },
    include: { user: true },
  })
  if (member === null) throw notFound('Member')
  if (user_id === ANONYMOUS_USER_UUID && org === DEFAULT_ORGANIZATION_UUID) {
    throw conflict('Without sign-in everybody is this user, who remains an administrator of the default organization')
  }
  return { own, member }
}

/** Throws `conflict` for the only owner. A user who cannot act does not count. */
async function requireOtherOwner(
  deps: Deps,
  tx: Prisma.TransactionClient,
  { userId, organizationId, role }: MemberRow,
): Promise<void> {
  if (role !== 'owner') return
  const isOther = { organizationId, role: 'owner', userId: { not: userId } } as const
  const other = await tx.member.findFirst({ where: { ...isOther, AND: visibleMembers(deps) } })
  if (other === null) throw conflict('An organization needs an owner; make another member an owner first')
}
