import type { Role } from '../../../contract/auth.ts'

/** Reports whether the role `own` may grant or revoke `role`: an owner any, an administrator any but owner. */
export const mayManage = (own: Role, role: Role): boolean => own === 'owner' || (own === 'admin' && role !== 'owner')

/** Returns the roles that the role `own` may not grant. */
export const rolesBeyond = (own: Role): Role[] =>
  (['owner', 'admin', 'member'] as const).filter((role) => !mayManage(own, role))
