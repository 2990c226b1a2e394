import { IDENTITY_PROVIDERS, type TokenResponse } from '../../../contract/auth.ts'
import { normalizeEmail } from '../../../lib/email.ts'
import type { User } from '../../../prisma/generated/client.ts'
import type { Origin } from '../../kit/actor.ts'
import { forbidden, invalid, notFound, unauthenticated } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { appointAdministrator } from './administrator.ts'
import { checkCallback, readSecrets } from './callback.ts'
import type { Identity, IdentityProvider } from './identity-provider.ts'
import { createUser, emailTaken, type NewUser, startLogin } from './log-in.ts'

/** Lifetime of a started sign-in; a user who comes back later has to start again. */
const LIFETIME_SECONDS = 10 * 60
/** Console, or documentation if there is no console. */
const DEFAULT_RETURN_TO = '/'
/** Limit for the cookie's value: browsers reject cookies over 4 KB, including name and attributes. */
const MAX_STATE_CHARACTERS = 3800

export type SignInStart = { location: string; state: string; lifetimeSeconds: number }

/**
 * Starts a sign-in at an identity provider; the browser has to keep `state`. Throws `not_found`, `invalid` and
 * `bad_gateway`.
 */
export async function startSignIn(deps: Deps, name: string, returnTo: string | undefined): Promise<SignInStart> {
  const provider = requireProvider(deps, name)
  const target = returnTo === undefined ? `${deps.auth.baseUrl}${DEFAULT_RETURN_TO}` : ownAddress(deps, returnTo)
  const { location, secrets } = await provider.start()
  const state = await deps.auth.tokens.seal({ ...secrets, provider: name, returnTo: target }, LIFETIME_SECONDS)
  if (state.length > MAX_STATE_CHARACTERS) throw invalid('return_to: must be shorter')
  return { location, state, lifetimeSeconds: LIFETIME_SECONDS }
}

/**
 * Completes a sign-in, and creates a missing user. Throws what IdentityProvider.finish throws, and `conflict` for an
 * e-mail that is registered with another method: the service cannot tell that it is the same person.
 */
export async function finishSignIn(
  deps: Deps,
  name: string,
  { state, query, origin }: { state: string | undefined; query: string; origin: Origin },
): Promise<{ tokens: TokenResponse; location: string }> {
  const provider = requireProvider(deps, name)
  const answered = checkCallback(query)
  const sealed = state === undefined ? undefined : await deps.auth.tokens.unseal(state)
  if (sealed === undefined || sealed.provider !== name) {
    throw unauthenticated('This sign-in was not begun in this browser, or too long ago; begin again')
  }
  const identity = await provider.finish(query, readSecrets(sealed, answered))
  // Written by startSignIn.
  return { tokens: await signIn(deps, name, identity, origin), location: sealed.returnTo as string }
}

function requireProvider(deps: Deps, name: string): IdentityProvider {
  const known = IDENTITY_PROVIDERS.find((candidate) => candidate === name)
  const provider = known && deps.auth.identityProviders[known]
  if (provider === undefined) throw notFound('Identity provider')
  return provider
}

async function signIn(
  deps: Deps,
  provider: string,
  { subject, ...identity }: Identity,
  origin: Origin,
): Promise<TokenResponse> {
  const email = normalizeEmail(identity.email)
  const find = () => deps.db.user.findUnique({ where: { provider_subject: { provider, subject } } })
  const known = (await find()) ?? (await createKnown(deps, { ...identity, email, provider, subject }, origin, find))
  await appointAdministrator(deps, { id: known.id, email })
  return startLogin(deps, known, { origin, method: provider })
}

async function createKnown(deps: Deps, user: NewUser, origin: Origin, find: () => Promise<User | null>): Promise<User> {
  if (!deps.auth.hasSignup) {
    const isTaken = (await deps.db.user.count({ where: { email: user.email } })) > 0
    throw isTaken ? emailTaken() : forbidden('Nobody has signed in here as you before, and registration is not enabled')
  }
  try {
    return await createUser(deps, user, origin)
  } catch (error) {
    // A concurrent sign-in of the same user may have been faster.
    const made = await find()
    if (made === null) throw error
    return made
  }
}

/** Resolves a path to an address of the service itself. Throws `invalid` for anything that leads elsewhere. */
function ownAddress({ auth }: Deps, path: string): string {
  const own = new URL(auth.baseUrl)
  const url = path.startsWith('/') && URL.canParse(path, own.href) ? new URL(path, own.href) : undefined
  if (url?.origin !== own.origin) throw invalid('return_to: must be a path that begins with one slash')
  return url.href
}
