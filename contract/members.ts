import { z } from 'zod'
import { Role } from './auth.ts'
import { DateTime, listOf } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { OrganizationId, UserId, wireUuid } from './kit/ids.ts'
import { pagination } from './kit/query.ts'

const Member = z
  .object({
    user_id: wireUuid,
    email: z.string(),
    name: z.string(),
    avatar_url: z.string().nullish(),
    role: Role,
    joined_at: DateTime,
  })
  .meta({ id: 'OrganizationMember' })
export type Member = z.infer<typeof Member>

const UpdateMemberRequest = z.object({ role: Role }).meta({ id: 'UpdateMemberRequest' })
export type UpdateMemberRequest = z.infer<typeof UpdateMemberRequest>

const ofMember = z.object({ org: OrganizationId, user_id: UserId })

export const memberEndpoints = group(
  { tag: 'organizations', path: '/v1/orgs/{org}/members', access: 'user' },
  {
    list: {
      operationId: 'listMembers',
      method: 'GET',
      summary: "Lists the members of one of the caller's organizations, newest first",
      params: z.object({ org: OrganizationId }),
      query: z.object(pagination),
      responses: { 200: listOf(Member) },
    },
    patch: {
      operationId: 'updateMember',
      method: 'PATCH',
      at: '/{user_id}',
      login: true,
      summary: 'Changes the role of a member; for owners, and for administrators unless the old or new role is owner',
      description: 'An organization keeps at least one owner: the role of the last one cannot be changed (409).',
      params: ofMember,
      body: UpdateMemberRequest,
      responses: { 200: Member },
      errors: [409],
    },
    delete: {
      operationId: 'removeMember',
      method: 'DELETE',
      at: '/{user_id}',
      login: true,
      summary: 'Removes a member, or lets the caller leave',
      description:
        "The user's access, API keys, streams and invitations in the organization end at once. Anyone may leave, except the " +
        'last owner (409).',
      params: ofMember,
      responses: { 204: null },
      errors: [409],
    },
  },
)
