import type { CreatedInvitation, CreateInvitationRequest, Invitation, OrganizationMember } from 'agent-session-client'
import { Time } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { api, organization } from '../service.ts'
import { html } from '../ui.ts'

const DAY_SECONDS = 24 * 60 * 60
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
  about: 'Who belongs to this organization. Others come by an invitation.',
  list: async () => (await api.listMembers({ path: path() })).data,
  idOf: ({ user_id }) => user_id,
  nameOf: ({ name, email }) => name || email,
  columns: [
    { title: 'E-mail', cell: ({ email }) => email },
    { title: 'Role', cell: ({ role }) => role },
    { title: 'Since', cell: ({ joined_at }) => html`<${Time} at=${joined_at} />` },
  ],
  fields: () => [ROLE],
  valuesOf: ({ role }) => ({ role }),
  update: ({ user_id }, changes) =>
    api.updateMember({ path: { ...path(), user_id }, body: changes as Pick<OrganizationMember, 'role'> }),
  remove: {
    label: 'Remove',
    question: ({ name, email }) => `Remove ${name || email} from this organization? Their API keys for it end.`,
    run: ({ user_id }) => api.removeMember({ path: { ...path(), user_id } }),
  },
}

export const invitations: Resource<Invitation> = {
  path: 'invitations',
  title: 'Invitations',
  one: 'invitation',
  about: 'An invitation is a link for one person. Whoever has it can join until it ends.',
  list: async () => (await api.listInvitations({ path: path() })).data,
  idOf: ({ id }) => id,
  nameOf: ({ role }) => `For a new ${role}`,
  columns: [
    { title: 'Made', cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
    { title: 'Ends', cell: ({ expires_at }) => html`<${Time} at=${expires_at} />` },
  ],
  fields: () => [ROLE, { name: 'days', label: 'Days until it ends', kind: 'number', hint: 'Empty: 7 days.' }],
  create: ({ role, days }) => {
    const expires_in = days === undefined ? undefined : Number(days) * DAY_SECONDS
    return api.createInvitation({ path: path(), body: { role, expires_in } as CreateInvitationRequest })
  },
  Created: ({ item }) => {
    const { url } = item as CreatedInvitation
    return html`<p role="status">Send this link to the person. It is shown only now:</p>
      <p><code class="secret">${url}</code></p>`
  },
  remove: {
    label: 'Withdraw',
    question: () => 'Withdraw this invitation? Its link leads nowhere then.',
    run: ({ id }) => api.withdrawInvitation({ path: { ...path(), invitation_id: id } }),
  },
}
