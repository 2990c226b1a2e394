import type { Deps } from '../deps.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../ids.ts'
import { hashPassword, verifyPassword } from './passwords.ts'

/**
 * Makes the configured administrator a user who owns the default organization. Whoever had the e-mail before, or the
 * password before, is out: the environment says who it is. May be repeated, also by several processes at once.
 */
export async function prepareAdministrator(deps: Deps): Promise<void> {
  const { administrator } = deps.auth
  if (administrator === undefined) return
  const { email, password } = administrator
  const known = await deps.db.user.findUnique({ where: { email } })
  const isKnown = known !== null && known.provider === null && (await verifyPassword(known.passwordHash, password))
  const userId = isKnown ? known.id : await takeOver(deps, email, await hashPassword(password))
  await deps.db.member.upsert({
    where: { userId_organizationId: { userId, organizationId: DEFAULT_ORGANIZATION_UUID } },
    create: { userId, organizationId: DEFAULT_ORGANIZATION_UUID, role: 'owner' },
    update: { role: 'owner' },
  })
}

async function takeOver(deps: Deps, email: string, passwordHash: string): Promise<string> {
  const name = email.slice(0, email.indexOf('@')) || email
  const own = { passwordHash, provider: null, subject: null }
  return deps.db.$transaction(async (tx) => {
    const { id } = await tx.user.upsert({
      where: { email },
      create: { id: newUuid(), email, name, ...own },
      update: own,
    })
    await tx.refreshToken.deleteMany({ where: { userId: id } })
    await tx.apiKey.deleteMany({ where: { userId: id } })
    return id
  })
}
