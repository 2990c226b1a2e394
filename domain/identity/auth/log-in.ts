import type { LoginRequest, RegisterRequest, TokenResponse } from '../../../contract/auth.ts'
import { deleteInBatches } from '../../../lib/delete-in-batches.ts'
import { normalizeEmail } from '../../../lib/email.ts'
import type { Prisma, User } from '../../../prisma/generated/client.ts'
import { conflict, forbidden, unauthenticated } from '../../kit/errors.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { hashPassword, verifyPassword } from './passwords.ts'
import { onlyEmail } from './settings.ts'

/** Maximum number of a user's logins. A further login ends the oldest. */
const MAX_LOGINS = 100

/**
 * Logs a user in. All wrong e-mails and passwords fail with the same message after the same time. Throws
 * `unauthenticated`, and `too_many` when too many passwords are being checked.
 */
export async function logIn(deps: Deps, { email, password }: LoginRequest): Promise<TokenResponse> {
  const { auth } = deps
  if (!auth.hasPasswords) throw unauthenticated('Password login is not enabled here')
  const given = normalizeEmail(email)
  const user = await deps.db.user.findUnique({ where: { email: given } })
  const isRight = await verifyPassword(user?.passwordHash, password)
  const isAllowed = onlyEmail(auth) === null || onlyEmail(auth) === given
  if (user === null || !isRight || !isAllowed) throw unauthenticated('The e-mail or the password is wrong')
  return startLogin(deps, user)
}

/**
 * Registers a user and logs the user in. Throws `forbidden` where registration is disabled, `conflict` for a taken
 * e-mail, and `too_many` as logIn does.
 */
export async function register(deps: Deps, { email, password, name }: RegisterRequest): Promise<TokenResponse> {
  const { auth } = deps
  if (!auth.hasSignup || !auth.hasPasswords) throw forbidden('Registration is not enabled here')
  const user = { email: normalizeEmail(email), name, passwordHash: await hashPassword(password) }
  return startLogin(deps, await createUser(deps, user))
}

export type NewUser = Pick<Prisma.UserCreateInput, 'email' | 'name' | 'passwordHash' | 'avatarUrl'> & {
  provider?: string
  subject?: string
}

/** Creates a user as a member of the default organization. Throws `conflict` for a taken e-mail. */
export async function createUser(deps: Deps, user: NewUser): Promise<User> {
  const members = { create: { organizationId: DEFAULT_ORGANIZATION_UUID, role: 'member' } } as const
  try {
    return await deps.db.user.create({ data: { id: newUuid(), ...user, members } })
  } catch (error) {
    if (isTaken(error)) throw emailTaken()
    throw error
  }
}

export const emailTaken = () => conflict('email: is already registered; sign in instead')

/** Recognizes Prisma's error for a violated unique constraint. */
const isTaken = (error: unknown): boolean => (error as { code?: unknown }).code === 'P2002'

/** A user and the credentials that proved the user's identity, both as stored in the database. */
export type Proven = Pick<User, 'id' | 'passwordHash' | 'provider' | 'subject'>

/**
 * Starts a login if the credentials that proved the identity still match: the configured administrator may have taken
 * the user over in the meantime. Throws `unauthenticated` otherwise.
 */
export async function startLogin(deps: Deps, { id, passwordHash, provider, subject }: Proven): Promise<TokenResponse> {
  const { tokens } = deps.auth
  const loginId = newUuid()
  const begun = await deps.db.$queryRaw<unknown[]>`
    WITH proven AS (
      SELECT id FROM users
      WHERE id = ${id}::uuid AND password_hash IS NOT DISTINCT FROM ${passwordHash}
        AND provider IS NOT DISTINCT FROM ${provider} AND subject IS NOT DISTINCT FROM ${subject}
      FOR SHARE
    ), begun AS (
      INSERT INTO refresh_tokens (id, user_id, expires_at)
      SELECT ${loginId}::uuid, id, now() + make_interval(secs => ${tokens.refreshSeconds}) FROM proven
      RETURNING user_id
    ), ended AS (
      DELETE FROM refresh_tokens WHERE id IN (
        SELECT token.id FROM refresh_tokens token JOIN begun ON begun.user_id = token.user_id
        ORDER BY token.created_at DESC, token.id DESC OFFSET ${MAX_LOGINS - 1}
      )
    )
    SELECT user_id FROM begun`
  if (begun.length === 0) throw unauthenticated('This login is no longer valid; sign in again')
  return tokens.issue({ userId: id, loginId, generation: 0 })
}

/**
 * Exchanges the current refresh token for new tokens. A refresh token that was used before ends its login, because it
 * may have been stolen. Throws `unauthenticated`.
 */
export async function refresh(deps: Deps, refreshToken: string): Promise<TokenResponse> {
  const { tokens } = deps.auth
  const login = await tokens.readRefresh(refreshToken)
  if (login === undefined) throw signInAgain()
  const [renewed] = await deps.db.$queryRaw<{ generation: number }[]>`
    UPDATE refresh_tokens token
    SET generation = token.generation + 1, expires_at = now() + make_interval(secs => ${tokens.refreshSeconds})
    FROM users
    WHERE token.id = ${login.loginId}::uuid AND token.user_id = ${login.userId}::uuid AND users.id = token.user_id
      AND token.generation = ${login.generation} AND token.expires_at > now()
      AND (${onlyEmail(deps.auth)}::text IS NULL OR users.email = ${onlyEmail(deps.auth)}::text)
    RETURNING token.generation`
  if (renewed === undefined) {
    const spent = { id: login.loginId, userId: login.userId, generation: { gt: login.generation } }
    await deps.db.refreshToken.deleteMany({ where: spent })
    throw signInAgain()
  }
  return tokens.issue({ ...login, generation: renewed.generation })
}

const signInAgain = () => unauthenticated('The refresh token is wrong or no longer valid; sign in again')

/** Ends a login: its refresh token and its access tokens are invalid from now on. May be repeated. */
export async function endLogin(deps: Deps, { loginId, userId }: { loginId: string; userId: string }): Promise<void> {
  await deps.db.refreshToken.deleteMany({ where: { id: loginId, userId } })
}

/**
 * Keeps a login open until the transaction ends, so that nothing made with it outlives it unnoticed. Does nothing in
 * mode none, which has no logins. Throws `unauthenticated` if the login has ended.
 */
export async function requireOpenLogin(
  tx: Prisma.TransactionClient,
  userId: string,
  loginId: string | undefined,
): Promise<void> {
  if (loginId === undefined) return
  const isOpen = await tx.$queryRaw<unknown[]>`SELECT 1 FROM refresh_tokens
    WHERE id = ${loginId}::uuid AND user_id = ${userId}::uuid AND expires_at > now() FOR SHARE`
  if (isOpen.length === 0) throw unauthenticated('Authentication required')
}

/** Deletes expired logins and returns their number. Throws the signal's reason when it aborts. */
export const deleteOldLogins = (deps: Deps, signal: AbortSignal): Promise<number> =>
  deleteInBatches(
    signal,
    (limit) => deps.db.$executeRaw`
      DELETE FROM refresh_tokens WHERE id IN (
        SELECT id FROM refresh_tokens WHERE expires_at < now() ORDER BY expires_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
      )`,
  )
