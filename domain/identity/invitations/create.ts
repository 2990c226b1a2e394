import { randomBytes } from 'node:crypto'
import { type CreateInvitationRequest, INVITATION_SECONDS } from '../../../contract/invitations.ts'
import type { OrganizationId } from '../../../contract/kit/ids.ts'
import type { Invitation as InvitationRow, Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { createOnce } from '../../kit/create-once.ts'
import { forbidden, quotaExceeded } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { newUuid } from '../../kit/ids.ts'
import { hashToken } from '../auth/derived-token.ts'
import { requireOpenLogin } from '../auth/log-in.ts'
import type { Deps } from '../deps.ts'
import { lockMembers } from '../members/lock.ts'
import { mayManage } from '../members/roles.ts'
import { requireMember } from '../organizations.ts'
import { presentInvitation } from './present.ts'
import { type MadeInvitation, tokenOf } from './token.ts'

/** Maximum number of pending invitations of an organization. */
const MAX_PENDING = 100

/**
 * Creates an invitation. `loginId` is the login that asks for it, undefined in mode none. Throws `not_found`,
 * `forbidden` when the caller's role may not grant that role, `conflict` beyond MAX_PENDING, and `unauthenticated` when
 * the login has ended.
 */
export async function createInvitation(
  deps: Deps,
  actor: Actor,
  organizationId: OrganizationId,
  { role, expires_in }: CreateInvitationRequest,
  { loginId, ...attempt }: CreationAttempt & { loginId: string | undefined },
): Promise<MadeInvitation> {
  const seed = attempt.uuid ?? randomBytes(32).toString('hex')
  const hash = hashToken(tokenOf(deps, seed))
  const row = await createOnce(attempt, {
    find: (requestId) =>
      deps.db.invitation.findFirst({ where: { requestId, createdBy: actor.userId, organizationId } }),
    insert: () =>
      deps.db.$transaction(async (tx) => {
        await lockMembers(tx, organizationId)
        await requireInviter(tx, actor, organizationId, role)
        await requireOpenLogin(tx, actor.userId, loginId)
        const row = await insertPending(tx, {
          id: newUuid(),
          organizationId,
          createdBy: actor.userId,
          requestId: attempt.uuid ?? null,
          role,
          hash,
          expiresAt: new Date(Date.now() + (expires_in ?? INVITATION_SECONDS) * 1000),
        })
        const told = row && ({ action: 'invitation.create', target: row.id, details: { role } } as const)
        if (told !== undefined) await audit(tx, { ...actor, organizationId }, told)
        return row
      }),
  })
  return { invitation: presentInvitation(row), seed, hash: Buffer.from(row.hash).toString('hex') }
}

async function requireInviter(
  tx: Prisma.TransactionClient,
  actor: Actor,
  organizationId: OrganizationId,
  role: CreateInvitationRequest['role'],
): Promise<void> {
  const own = await requireMember({ db: tx }, actor, organizationId)
  if (own.role === 'member') throw forbidden('Only owners and administrators of the organization may invite')
  if (!mayManage(own.role, role)) throw forbidden('Only owners of the organization may invite an owner')
}

/** Inserts an invitation; undefined when another run of the request has already created it. Throws `conflict`. */
async function insertPending(
  tx: Prisma.TransactionClient,
  data: Prisma.InvitationCreateManyInput,
): Promise<InvitationRow | undefined> {
  const { organizationId } = data
  await tx.$executeRaw`DELETE FROM invitations WHERE organization_id = ${organizationId}::uuid AND expires_at <= now()`
  if ((await tx.invitation.count({ where: { organizationId } })) >= MAX_PENDING) {
    throw quotaExceeded(
      `The organization has ${MAX_PENDING} pending invitations, which is the limit; withdraw one first`,
    )
  }
  const [row] = await tx.invitation.createManyAndReturn({ data: [data], skipDuplicates: true })
  return row
}
