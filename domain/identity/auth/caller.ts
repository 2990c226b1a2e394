import type { Role } from '../../../contract/auth.ts'
import type { Actor } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import { ANONYMOUS_USER_UUID, DEFAULT_ORGANIZATION_UUID } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { API_KEY } from './api-keys.ts'
import { hashToken } from './derived-token.ts'
import { onlyEmail } from './settings.ts'

/**
 * The login or API key that identifies a caller; `id` is the id of the login or the key. With `needsAdmin` it is valid
 * only while its user is an administrator or owner of the organization.
 */
export type Credential = {
  id: string
  organizationId: string
  expiresAt: Date | undefined
  scopes: string[]
  needsAdmin?: boolean
}

/** An identified caller. `credential` is undefined in mode none. */
export type Caller = { actor: Actor; credential: Credential | undefined }

/**
 * The organization that a request asks for, by uuid. Without `isStrict`, any of the caller's organizations is
 * acceptable.
 */
export type Wanted = { organizationId: string | undefined; isStrict: boolean }

type Membership = { organizationId: string | null; role: Role }

/** Returns the user that all callers share in mode none. Throws `not_found` for an organization without that user. */
export async function anonymousCaller(deps: Deps, wanted: Wanted): Promise<Caller> {
  if (wanted.organizationId === undefined || wanted.organizationId === DEFAULT_ORGANIZATION_UUID) return ANYBODY
  const members = await deps.db.$queryRaw<Membership[]>`
    SELECT organization_id AS "organizationId", role FROM members WHERE user_id = ${ANONYMOUS_USER_UUID}::uuid
    ORDER BY organization_id = ${wanted.organizationId}::uuid DESC, created_at, organization_id LIMIT 1`
  return { actor: choose(members[0], ANONYMOUS_USER_UUID, wanted), credential: undefined }
}

const ANYBODY: Caller = {
  actor: { organizationId: DEFAULT_ORGANIZATION_UUID, userId: ANONYMOUS_USER_UUID, role: 'admin', apiKeyId: null },
  credential: undefined,
}

/**
 * Returns the caller that an access token or an API key identifies, or undefined when it is invalid for any reason.
 * Queries the database each time, so that a revocation takes effect at once. Throws `not_found` for an organization
 * that the caller does not belong to.
 */
export const identify = (deps: Deps, credential: string, wanted: Wanted): Promise<Caller | undefined> =>
  API_KEY.test(credential) ? identifyApiKey(deps, credential) : identifyLogin(deps, credential, wanted)

async function identifyLogin(deps: Deps, token: string, wanted: Wanted): Promise<Caller | undefined> {
  const login = await deps.auth.tokens.readAccess(token)
  if (login === undefined) return undefined
  const { userId, loginId, expiresAt } = login
  const only = onlyEmail(deps.auth)
  const [member] = await deps.db.$queryRaw<Membership[]>`
    SELECT member.organization_id AS "organizationId", member.role
    FROM refresh_tokens token
    JOIN users ON users.id = token.user_id
    LEFT JOIN LATERAL (
      SELECT organization_id, role FROM members WHERE user_id = token.user_id
      ORDER BY coalesce(organization_id = ${wanted.organizationId ?? null}::uuid, false) DESC, created_at, organization_id
      LIMIT 1
    ) AS member ON true
    WHERE token.id = ${loginId}::uuid AND token.user_id = ${userId}::uuid AND token.expires_at > now()
      AND (${only}::text IS NULL OR users.email = ${only}::text)`
  if (member === undefined) return undefined
  const actor = choose(member, userId, wanted)
  return { actor, credential: { id: loginId, organizationId: actor.organizationId, expiresAt, scopes: [] } }
}

/**
 * Converts a membership to an actor. Throws `not_found` when there is none, or when it is not in the required
 * organization. A user in no organization, who may create or join one, acts in the default one, where not being a
 * member permits nothing.
 */
function choose(member: Membership | undefined, userId: string, { organizationId, isStrict }: Wanted): Actor {
  if (!member?.organizationId && !isStrict) {
    return { organizationId: DEFAULT_ORGANIZATION_UUID, userId, role: 'member', apiKeyId: null }
  }
  const isOther = isStrict && organizationId !== undefined && member?.organizationId !== organizationId
  if (!member?.organizationId || isOther) throw notFound('Organization')
  return { organizationId: member.organizationId, userId, role: member.role, apiKeyId: null }
}

type KeyRow = {
  id: string
  userId: string
  organizationId: string
  role: Role
  scopes: string[]
  expiresAt: Date | null
  isUseDue: boolean
}

/** Identifies the caller of an API key. A key belongs to one organization, so the requested one is ignored. */
async function identifyApiKey(deps: Deps, key: string): Promise<Caller | undefined> {
  const only = onlyEmail(deps.auth)
  const [row] = await deps.db.$queryRaw<KeyRow[]>`
    SELECT key.id, key.user_id AS "userId", key.organization_id AS "organizationId", member.role, key.scopes,
      key.expires_at AS "expiresAt", coalesce(key.last_used_at < now() - interval '1 minute', true) AS "isUseDue"
    FROM api_keys key
    JOIN members member ON member.user_id = key.user_id AND member.organization_id = key.organization_id
    JOIN users ON users.id = key.user_id
    WHERE key.hash = ${hashToken(key)} AND coalesce(key.expires_at > now(), true)
      -- Of a time in which everybody could make one.
      AND key.user_id <> ${ANONYMOUS_USER_UUID}::uuid
      AND (${only}::text IS NULL OR users.email = ${only}::text)`
  if (row === undefined) return undefined
  // Updated at most once a minute: otherwise a busy key would cause a write on every request.
  if (row.isUseDue) {
    await deps.db.$executeRaw`
      UPDATE api_keys SET last_used_at = now()
      WHERE id = ${row.id}::uuid AND coalesce(last_used_at < now() - interval '1 minute', true)`
  }
  const { id, userId, organizationId, role, scopes } = row
  return {
    actor: { organizationId, userId, role, apiKeyId: id },
    credential: { id, organizationId, expiresAt: row.expiresAt ?? undefined, scopes },
  }
}

/** A credential in one organization: a login may be used in several and end in only one of them. */
type Held = Pick<Credential, 'id' | 'organizationId' | 'needsAdmin'>
export const heldKey = ({ id, organizationId, needsAdmin }: Held): string =>
  `${id} ${organizationId}${needsAdmin === true ? ' admin' : ''}`

/**
 * Returns the heldKey of each credential that is no longer valid. For long-lived connections, which are authenticated
 * only when they open.
 */
export async function findEnded(deps: Deps, held: Held[]): Promise<Set<string>> {
  const rows = await deps.db.$queryRaw<Held[]>`
    SELECT given.id, given.organization_id AS "organizationId", given.needs_admin AS "needsAdmin" FROM unnest(
      ${held.map(({ id }) => id)}::uuid[], ${held.map(({ organizationId }) => organizationId)}::uuid[],
      ${held.map(({ needsAdmin }) => needsAdmin === true)}::boolean[]
    ) AS given (id, organization_id, needs_admin)
    WHERE NOT EXISTS (
      SELECT FROM refresh_tokens token
      JOIN members member ON member.user_id = token.user_id AND member.organization_id = given.organization_id
      WHERE token.id = given.id AND token.expires_at > now() AND (member.role <> 'member' OR NOT given.needs_admin)
    ) AND NOT EXISTS (
      SELECT FROM api_keys key
      JOIN members member ON member.user_id = key.user_id AND member.organization_id = key.organization_id
      WHERE key.id = given.id AND key.organization_id = given.organization_id AND coalesce(key.expires_at > now(), true)
        AND (member.role <> 'member' OR NOT given.needs_admin)
    )`
  return new Set(rows.map(heldKey))
}
