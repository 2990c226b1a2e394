import type { Member } from '../../../contract/members.ts'
import type { Member as MembershipRow, User } from '../../../prisma/generated/client.ts'

export type MemberRow = MembershipRow & { user: User }

export const presentMember = ({ user, role, createdAt }: MemberRow): Member => ({
  user_id: user.id,
  email: user.email,
  name: user.name,
  avatar_url: user.avatarUrl,
  role,
  joined_at: createdAt.toISOString(),
})
