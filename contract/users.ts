import { z } from 'zod'
import { DateTime, listOf, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { OrganizationId, wireId, wireUuid } from './kit/ids.ts'

const MAX_SEARCH_BYTES = 200

const User = z
  .object({
    id: wireUuid,
    email: z.string(),
    name: z.string(),
    roles: z.array(z.string()).meta({ description: 'In the current organization.' }),
    auth_provider: z.string().nullish().meta({ description: 'password, idpa or idpb.' }),
    avatar_url: z.string().nullish(),
    created_at: DateTime,
  })
  .meta({ id: 'User' })
export type User = z.infer<typeof User>

export const userEndpoints = group(
  { tag: 'users', path: '/v1/users', access: 'member' },
  {
    list: {
      operationId: 'listUsers',
      method: 'GET',
      summary: 'Lists the users of the current organization, newest member first',
      query: z.object({
        search: textUpTo(MAX_SEARCH_BYTES)
          .optional()
          .meta({ description: 'Only users whose name or e-mail contains this text; case is ignored.' }),
      }),
      responses: { 200: listOf(User) },
    },
    deleteMe: {
      operationId: 'deleteCurrentUser',
      method: 'DELETE',
      at: '/me',
      access: 'user',
      login: true,
      summary: 'Deletes the caller with their logins, API keys, invitations and pins',
      description:
        'Organizations without another member are deleted too. Sessions in other ' +
        'organizations belong to these and stay. The only owner of an organization with other members has to make one of ' +
        'them an owner first, or delete it (409).',
      responses: { 204: null },
      errors: [409],
    },
    switchOrganization: {
      operationId: 'switchOrganization',
      method: 'POST',
      at: '/me/switch-org',
      access: 'user',
      login: true,
      summary: 'Makes another organization the current one, with a cookie; the header X-Org-Id takes precedence',
      body: z.object({ org_id: OrganizationId }).meta({ id: 'SwitchOrgRequest' }),
      responses: { 200: z.object({ success: z.boolean(), org_id: wireId('org') }).meta({ id: 'SwitchOrgResponse' }) },
    },
  },
)
