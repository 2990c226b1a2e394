import type { Role } from '../../contract/auth.ts'

/**
 * The caller and its organization, carried by every query of the domain. `apiKeyId` is null for a login. An API key
 * belongs to one organization.
 */
export type Actor = { organizationId: string; userId: string; role: Role; apiKeyId: string | null }

/** User of an actor that is a schedule, which continues after its creator has left. */
export const NO_USER = '00000000-0000-0000-0000-000000000000'

/** The organization in whose name something is done, by a caller or by the service itself. */
export type OrganizationScope = Pick<Actor, 'organizationId'>
