import type { CreatedInvitation, CreateInvitationRequest, Invitation, OrganizationMember } from 'agent-session-client'
import { readPages } from '../load.ts'
import { CopyButton, Time } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { api, auth, identify, isAdministrator, organization, user } from '../service.ts'
import { html } from '../ui.ts'

const DAY_SECONDS = 24 * 60 * 60
const isSelf = ({ user_id }: OrganizationMember): boolean => user_id === user.value?.id
const path = () => ({ org: organization.value })
const ROLE = {
  name: 'role',
  label: 'Role',
  kind: 'choice' as const,
  isRequired: true,
  options: ['member', 'admin', 'owner'].map((value) => ({ value, label: value })),
}

export const members: Resource<OrganizationMember> = {
  path: 'members',
  title: 'Members',
  one: 'member',
  about: 'People in this organization. Invite others with an invitation.',
  mayWrite: isAdministrator,
  list: () => readPages((query) => api.organizations.listMembers({ ...path(), ...query })),
  idOf: ({ user_id }) => user_id,
  nameOf: ({ name, email }) => name || email,
  columns: [
    { title: 'E-mail', cell: ({ email }) => email },
    { title: 'Role', cell: ({ role }) => role },
    { title: 'Joined', cell: ({ joined_at }) => html`<${Time} at=${joined_at} />` },
  ],
  fields: () => [ROLE],
  valuesOf: ({ role }) => ({ role }),
  update: ({ user_id }, changes) =>
    api.organizations.updateMember({ ...path(), user_id, ...(changes as Pick<OrganizationMember, 'role'>) }),
  remove: {
    label: (member) => (isSelf(member) ? 'Leave the organization' : 'Remove'),
    isForAll: true,
    isOffered: (member) => (isSelf(member) ? auth.value?.mode !== 'none' : isAdministrator()),
    question: (member) =>
      isSelf(member)
        ? 'Leave this organization? Your API keys for it end.'
        : `Remove ${member.name || member.email} from this organization? Their API keys for it end.`,
    run: async (member) => {
      await api.organizations.removeMember({ ...path(), user_id: member.user_id })
      if (isSelf(member)) await identify()
    },
  },
}

export const invitations: Resource<Invitation> = {
  path: 'invitations',
  title: 'Invitations',
  one: 'invitation',
  about: () =>
    isAdministrator()
      ? `Each is a link that lets one person join until it expires.${auth.value?.mode === 'full' ? '' : ' It can be used once the service runs in mode full.'}`
      : 'Owners and administrators see and make them.',
  mayWrite: isAdministrator,
  list: async () =>
    isAdministrator() ? readPages((query) => api.organizations.listInvitations({ ...path(), ...query })) : [],
  idOf: ({ id }) => id,
  nameOf: ({ role }) => `For a new ${role}`,
  columns: [
    { title: 'Created', cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
    { title: 'Expires', cell: ({ expires_at }) => html`<${Time} at=${expires_at} />` },
  ],
  fields: () => [ROLE, { name: 'days', label: 'Expires in days', kind: 'number', hint: 'Empty: 7 days.' }],
  create: ({ role, days }) => {
    const expires_in = days === undefined ? undefined : Number(days) * DAY_SECONDS
    return api.organizations.createInvitation({ ...path(), ...({ role, expires_in } as CreateInvitationRequest) })
  },
  Created: ({ item }) => {
    const { url } = item as CreatedInvitation
    return html`<p role="status">Send this link to the person. It is not shown again:</p>
      <p><code class="secret">${url}</code> <${CopyButton} text=${url} /></p>`
  },
  remove: {
    label: 'Revoke',
    question: () => 'Revoke this invitation? Its link stops working.',
    run: ({ id }) => api.organizations.withdrawInvitation({ ...path(), invitation_id: id }),
  },
}
