import { z } from 'zod'
import { DateTime, listOf, nameUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { OrganizationId, wireId } from './kit/ids.ts'

const MAX_NAME_BYTES = 255

export const Organization = z
  .object({ id: wireId('org'), name: z.string(), created_at: DateTime, updated_at: DateTime })
  .meta({ id: 'OrganizationResponse' })
export type Organization = z.infer<typeof Organization>

const Name = nameUpTo(MAX_NAME_BYTES)

const CreateOrganizationRequest = z.object({ name: Name }).meta({ id: 'CreateOrganizationRequest' })
export type CreateOrganizationRequest = z.infer<typeof CreateOrganizationRequest>

const UpdateOrganizationRequest = z.object({ name: Name.nullish() }).meta({ id: 'UpdateOrganizationRequest' })
export type UpdateOrganizationRequest = z.infer<typeof UpdateOrganizationRequest>

export const organizationEndpoints = group(
  { tag: 'organizations', path: '/v1/orgs', access: 'user' },
  {
    list: {
      operationId: 'listOrganizations',
      method: 'GET',
      summary: "Lists the caller's organizations in the order in which they were joined",
      responses: { 200: listOf(Organization) },
    },
    create: {
      operationId: 'createOrganization',
      method: 'POST',
      login: true,
      summary: 'Creates an organization that the caller owns',
      body: CreateOrganizationRequest,
      creates: true,
      responses: { 201: Organization },
    },
    get: {
      operationId: 'getOrganization',
      method: 'GET',
      at: '/{org}',
      summary: 'Gets an organization of the caller',
      params: z.object({ org: OrganizationId }),
      responses: { 200: Organization },
    },
    patch: {
      operationId: 'updateOrganization',
      method: 'PATCH',
      at: '/{org}',
      summary: 'Changes an organization; for its owners and administrators',
      params: z.object({ org: OrganizationId }),
      body: UpdateOrganizationRequest,
      responses: { 200: Organization },
    },
    delete: {
      operationId: 'deleteOrganization',
      method: 'DELETE',
      at: '/{org}',
      login: true,
      summary: 'Deletes an organization with everything in it; for its owners',
      description:
        'Nobody has access any more once this is answered, running turns are cancelled, and streams end. The data is then ' +
        'removed in the background. The default organization cannot be deleted (409).',
      params: z.object({ org: OrganizationId }),
      responses: { 204: null },
      errors: [409],
    },
  },
)
