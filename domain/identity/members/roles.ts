import type { Role } from '../../../contract/auth.ts'

/**
 * Reports whether a member with the role `own` may give or take away `role`: an owner any, an administrator any but
 * owner.
 */
export const mayManage = (own: Role, role: Role): boolean => own === 'owner' || (own === 'admin' && role !== 'owner')

/** Returns the roles that a member with the role `own` may not give. */
export const rolesBeyond = (own: Role): Role[] =>
  (['owner', 'admin', 'member'] as const).filter((role) => !mayManage(own, role))
