import type { Role } from '../../contract/auth.ts'

/** The caller and its organization, carried by every query of the domain. An API key belongs to one organization. */
export type Actor = { organizationId: string; userId: string; role: Role; isApiKey: boolean }
