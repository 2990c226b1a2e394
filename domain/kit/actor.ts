import type { Role } from '../../contract/auth.ts'

/** The caller and its organization, carried by every query of the domain. An API key belongs to one organization. */
export type Actor = { organizationId: string; userId: string; role: Role; isApiKey: boolean }

/** The organization in whose name something is done, by a caller or by the service itself. */
export type OrganizationScope = Pick<Actor, 'organizationId'>
