import type { Role } from '../contract/auth.ts'

/** Who asks, and in which organization: every query of the domain carries it. An API key is of that one only. */
export type Actor = { organizationId: string; userId: string; role: Role; isApiKey: boolean }
