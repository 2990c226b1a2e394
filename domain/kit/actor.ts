import type { Role } from '../../contract/auth.ts'

/**
 * The caller and its organization, carried by every query of the domain. `apiKeyId` is null for a login. An API key
 * belongs to one organization.
 */
export type Actor = {
  organizationId: string
  userId: string
  role: Role
  apiKeyId: string | null
  /** Undefined for an actor that is not a request, such as a schedule. */
  origin?: Origin
}

/** Where a request comes from, for the audit log: the client's IP address, and the id of the request. */
export type Origin = { address: string; requestId: string }

/** User of an actor that is a schedule, which continues after its creator has left. */
export const NO_USER = '00000000-0000-0000-0000-000000000000'

/** The organization in whose name something is done, by a caller or by the service itself. */
export type OrganizationScope = Pick<Actor, 'organizationId'>
