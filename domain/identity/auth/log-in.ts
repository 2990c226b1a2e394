import type { LoginRequest, RegisterRequest, TokenResponse } from '../../../contract/auth.ts'
import { deleteInBatches } from '../../../lib/delete-in-batches.ts'
import { normalizeEmail } from '../../../lib/email.ts'
import type { Prisma, User } from '../../../prisma/generated/client.ts'
import type { Origin } from '../../kit/actor.ts'
import { auditUser } from '../../kit/audit/entry.ts'
import { conflict, forbidden, unauthenticated } from '../../kit/errors.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { noteFailedSignIn } from './failed-sign-ins.ts'
import { hashPassword, verifyPassword } from './passwords.ts'
import { onlyEmail } from './settings.ts'

/** Maximum number of a user's logins. A further login ends the oldest. */
const MAX_LOGINS = 100

/**
 * Logs a user in. All wrong e-mails and passwords fail with the same message after the same time. Throws
 * `unauthenticated`, and `too_many` when too many passwords are being checked.
 */
export async function logIn(deps: Deps, { email, password }: LoginRequest, origin: Origin): Promise<TokenResponse> {
  const { auth } = deps
  if (!auth.hasPasswords) throw unauthenticated('Password login is not enabled here')
  const given = normalizeEmail(email)
  const user = await deps.db.user.findUnique({ where: { email: given } })
  const isRight = await verifyPassword(user?.passwordHash, password)
  const isAllowed = onlyEmail(auth) === null || onlyEmail(auth) === given
  if (user === null || !isRight || !isAllowed) {
    // Not awaited, so that the time of the answer does not tell a known e-mail from an unknown one.
    if (user !== null) void noteFailedSignIn(deps, user.id, origin)
    throw unauthenticated('The e-mail or the password is wrong')
  }
  return startLogin(deps, user, { origin, method: 'password' })
}

/**
 * Registers a user and logs the user in. Throws `forbidden` where registration is disabled, `conflict` for a taken
 * e-mail, and `too_many` as logIn does.
 */
export async function register(
  deps: Deps,
  { email, password, name }: RegisterRequest,
  origin: Origin,
): Promise<TokenResponse> {
  const { auth } = deps
  if (!auth.hasSignup || !auth.hasPasswords) throw forbidden('Registration is not enabled here')
  const user = { email: normalizeEmail(email), name, passwordHash: await hashPassword(password) }
  return startLogin(deps, await createUser(deps, user, origin), { origin, method: 'password' })
}

export type NewUser = Pick<Prisma.UserCreateInput, 'email' | 'name' | 'passwordHash' | 'avatarUrl'> & {
  provider?: string
  subject?: string
}

/** Creates a user as a member of the default organization. Throws `conflict` for a taken e-mail. */
export async function createUser(deps: Deps, user: NewUser, origin: Origin): Promise<User> {
  const members = { create: { organizationId: DEFAULT_ORGANIZATION_UUID, role: 'member' } } as const
  try {
    return await deps.db.$transaction(async (tx) => {
      const created = await tx.user.create({ data: { id: newUuid(), ...user, members } })
      await auditUser(tx, { userId: created.id, origin, isKnown: true }, { action: 'user.register' })
      return created
    })
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

/** Where a sign-in comes from, and what proved the identity: a password, or an identity provider by its name. */
export type SignIn = { origin: Origin; method: string }

/**
 * Starts a login if the credentials that proved the identity still match: the configured administrator may have taken
 * the user over in the meantime. Throws `unauthenticated` otherwise.
 */
export async function startLogin(deps: Deps, user: Proven, { origin, method }: SignIn): Promise<TokenResponse> {
  const login = { userId: user.id, loginId: newUuid(), generation: 0 }
  await deps.db.$transaction(async (tx) => {
    await insertLogin(tx, user, login.loginId, deps.auth.tokens.refreshSeconds)
    await auditUser(tx, { userId: user.id, origin, isKnown: true }, { action: 'user.sign_in', details: { method } })
  })
  return deps.auth.tokens.issue(login)
}

async function insertLogin(
  tx: Prisma.TransactionClient,
  { id, passwordHash, provider, subject }: Proven,
  loginId: string,
  seconds: number,
): Promise<void> {
  const begun = await tx.$queryRaw<unknown[]>`
    WITH proven AS (
      SELECT id FROM users
      WHERE id = ${id}::uuid AND password_hash IS NOT DISTINCT FROM ${passwordHash}
        AND provider IS NOT DISTINCT FROM ${provider} AND subject IS NOT DISTINCT FROM ${subject}
      FOR SHARE
    ), begun AS (
      INSERT INTO refresh_tokens (id, user_id, expires_at)
      SELECT ${loginId}::uuid, id, now() + make_interval(secs => ${seconds}) FROM proven
      RETURNING user_id
    ), ended AS (
      DELETE FROM refresh_tokens WHERE id IN (
        SELECT token.id FROM refresh_tokens token JOIN begun ON begun.user_id = token.user_id
        ORDER BY token.created_at DESC, token.id DESC OFFSET ${MAX_LOGINS - 1}
      )
    )
    SELECT user_id FROM begun`
  if (begun.length === 0) throw unauthenticated('This login is no longer valid; sign in again')
}

/**
 * Exchanges the current refresh token for new tokens. A refresh token that was used before ends its login, because it
 * may have been stolen. Throws `unauthenticated`.
 */
export async function refresh(deps: Deps, refreshToken: string, origin: Origin): Promise<TokenResponse> {
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
    const details = { reason: 'refresh_token_reused' }
    await deleteLogin(deps, { ...login, isSpent: { gt: login.generation } }, { origin, details })
    throw signInAgain()
  }
  return tokens.issue({ ...login, generation: renewed.generation })
}

const signInAgain = () => unauthenticated('The refresh token is wrong or no longer valid; sign in again')

/** Ends a login: its refresh token and its access tokens are invalid from now on. May be repeated. */
export const endLogin = (deps: Deps, login: LoginKey, origin: Origin): Promise<void> =>
  deleteLogin(deps, login, { origin })

type LoginKey = { loginId: string; userId: string }

const deleteLogin = (
  deps: Deps,
  { loginId, userId, isSpent }: LoginKey & { isSpent?: { gt: number } },
  { origin, details = {} }: { origin: Origin; details?: { reason?: string } },
): Promise<void> =>
  deps.db.$transaction(async (tx) => {
    const { count } = await tx.refreshToken.deleteMany({ where: { id: loginId, userId, generation: isSpent } })
    if (count > 0) await auditUser(tx, { userId, origin, isKnown: true }, { action: 'user.sign_out', details })
  })

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
