import type { Prisma } from '../../../prisma/generated/client.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { hashPassword, verifyPassword } from './passwords.ts'

/** Name of the row in service_keys that holds the id of the latest administrator. */
const REMEMBERED = 'administrator'

/**
 * Makes the configured administrator a user who owns the default organization. If the user with that e-mail does
 * not sign in with the configured password yet, sets it and ends all of the user's logins, API keys and invitations. A former administrator
 * becomes an ordinary member and loses them too. May be repeated, also by several processes at once. Does nothing
 * without an administrator's password in the environment, or if passwords are disabled: then see appointAdministrator.
 */
export async function prepareAdministrator(deps: Deps): Promise<void> {
  const { administrator, hasPasswords } = deps.auth
  if (administrator?.password === undefined || !hasPasswords) return
  const { email, password } = administrator
  const known = await deps.db.user.findUnique({ where: { email } })
  const isKnown = known !== null && known.provider === null && (await verifyPassword(known.passwordHash, password))
  const passwordHash = isKnown ? undefined : await hashPassword(password)
  await deps.db.$transaction(async (tx) => {
    const userId = passwordHash === undefined ? known?.id : await takeOver(tx, email, passwordHash)
    if (userId === undefined) throw new Error('There is no administrator.')
    await appoint(tx, userId)
  })
}

/**
 * Makes a user the owner of the default organization if the e-mail is the configured administrator's. The e-mail must
 * have just been verified by an identity provider. Applies only if passwords are disabled. May be repeated.
 */
export async function appointAdministrator(deps: Deps, { id, email }: { id: string; email: string }): Promise<void> {
  const { administrator, hasPasswords } = deps.auth
  if (hasPasswords || administrator?.email !== email) return
  await deps.db.$transaction((tx) => appoint(tx, id))
}

async function appoint(tx: Prisma.TransactionClient, userId: string): Promise<void> {
  await dismissFormer(tx, userId)
  await tx.member.upsert({
    where: { userId_organizationId: { userId, organizationId: DEFAULT_ORGANIZATION_UUID } },
    create: { userId, organizationId: DEFAULT_ORGANIZATION_UUID, role: 'owner' },
    update: { role: 'owner' },
  })
}

async function takeOver(tx: Prisma.TransactionClient, email: string, passwordHash: string): Promise<string> {
  const name = email.slice(0, email.indexOf('@')) || email
  const own = { passwordHash, provider: null, subject: null }
  const { id } = await tx.user.upsert({
    where: { email },
    create: { id: newUuid(), email, name, ...own },
    update: own,
  })
  await endCredentials(tx, id)
  return id
}

/**
 * Stores the user as the administrator. The previous one, if it was another user, becomes an ordinary member without
 * logins, API keys and invitations.
 */
async function dismissFormer(tx: Prisma.TransactionClient, userId: string): Promise<void> {
  const value = Buffer.from(userId)
  // The row lock lasts until the transaction ends, so that concurrent processes take turns.
  await tx.serviceKey.createMany({ data: [{ name: REMEMBERED, value }], skipDuplicates: true })
  const [row] = await tx.$queryRaw<{ value: Uint8Array }[]>`
    SELECT value FROM service_keys WHERE name = ${REMEMBERED} FOR UPDATE`
  const former = Buffer.from(row?.value ?? value).toString()
  if (former === userId) return
  await tx.serviceKey.update({ where: { name: REMEMBERED }, data: { value } })
  await tx.member.updateMany({
    where: { userId: former, organizationId: DEFAULT_ORGANIZATION_UUID },
    data: { role: 'member' },
  })
  await endCredentials(tx, former)
}

async function endCredentials(tx: Prisma.TransactionClient, userId: string): Promise<void> {
  await tx.refreshToken.deleteMany({ where: { userId } })
  await tx.apiKey.deleteMany({ where: { userId } })
  await tx.invitation.deleteMany({ where: { createdBy: userId } })
}
