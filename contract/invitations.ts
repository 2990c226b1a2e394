import { z } from 'zod'
import { Role } from './auth.ts'
import { DateTime, listOf, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { InvitationId, OrganizationId, wireUuid } from './kit/ids.ts'
import { pagination } from './kit/query.ts'
import { Organization } from './organizations.ts'

const MIN_SECONDS = 60
/** Default lifetime of an invitation. */
export const INVITATION_SECONDS = 7 * 24 * 60 * 60
const MAX_SECONDS = 30 * 24 * 60 * 60
const MAX_TOKEN_BYTES = 200

const Invitation = z
  .object({
    id: wireUuid,
    role: Role,
    created_by: wireUuid.meta({ description: 'User who made the invitation, which ends with their membership.' }),
    created_at: DateTime,
    expires_at: DateTime,
  })
  .meta({ id: 'Invitation' })
export type Invitation = z.infer<typeof Invitation>

const CreatedInvitation = Invitation.extend({
  token: z
    .string()
    .meta({ description: 'For one POST /v1/orgs/join: inv_ and 64 hex digits. It is shown only once, here.' }),
  url: z.string().meta({ description: 'Address of the page at which the invited person accepts.' }),
}).meta({ id: 'CreatedInvitation' })
export type CreatedInvitation = z.infer<typeof CreatedInvitation>

const CreateInvitationRequest = z
  .object({
    role: Role.meta({ description: 'Role of the invited person. Administrators cannot invite owners.' }),
    expires_in: z
      .int()
      .min(MIN_SECONDS, { error: `must be at least ${MIN_SECONDS} seconds` })
      .max(MAX_SECONDS, { error: `must be at most ${MAX_SECONDS} seconds` })
      .nullish()
      .meta({ description: `Seconds until the invitation expires. Default: ${INVITATION_SECONDS}, which is 7 days.` }),
  })
  .meta({ id: 'CreateInvitationRequest' })
export type CreateInvitationRequest = z.infer<typeof CreateInvitationRequest>

const JoinRequest = z.object({ token: textUpTo(MAX_TOKEN_BYTES) }).meta({ id: 'JoinOrganizationRequest' })
export type JoinRequest = z.infer<typeof JoinRequest>

const JoinedOrganization = Organization.extend({ role: Role }).meta({ id: 'JoinedOrganization' })
export type JoinedOrganization = z.infer<typeof JoinedOrganization>

const ofOrganization = z.object({ org: OrganizationId })

export const invitationEndpoints = group(
  { tag: 'organizations', path: '/v1/orgs', access: 'user' },
  {
    list: {
      operationId: 'listInvitations',
      method: 'GET',
      at: '/{org}/invitations',
      summary: 'Lists the pending invitations, the newest first; for owners and administrators',
      params: ofOrganization,
      query: z.object(pagination),
      responses: { 200: listOf(Invitation) },
    },
    create: {
      operationId: 'createInvitation',
      method: 'POST',
      at: '/{org}/invitations',
      login: true,
      summary: 'Creates an invitation, for owners and administrators; only this answer has its token, which works once',
      params: ofOrganization,
      body: CreateInvitationRequest,
      creates: true,
      responses: { 201: CreatedInvitation },
    },
    delete: {
      operationId: 'withdrawInvitation',
      method: 'DELETE',
      at: '/{org}/invitations/{invitation_id}',
      login: true,
      summary: 'Withdraws an invitation at once; for owners and administrators',
      params: z.object({ org: OrganizationId, invitation_id: InvitationId }),
      responses: { 204: null },
    },
    join: {
      operationId: 'joinOrganization',
      method: 'POST',
      at: '/join',
      login: true,
      summary: "Makes the caller a member of an invitation's organization",
      description:
        '404 if the token is unknown, expired, used or withdrawn. 409 if the caller is already a member; the invitation then ' +
        'stays valid.',
      body: JoinRequest,
      responses: { 200: JoinedOrganization },
      errors: [409],
    },
  },
)
