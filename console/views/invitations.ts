import type { CreatedInvitation, CreateInvitationRequest, Invitation } from 'agent-session-client'
import { readPages } from '../load.ts'
import { viewOf } from '../parts/list-view.ts'
import { CopyButton } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { Time } from '../parts/time.ts'
import { api, auth, isAdministrator, organization } from '../service.ts'
import { html } from '../ui.ts'
import { MemberTabs, ROLE } from './member-parts.ts'

const DAY_SECONDS = 24 * 60 * 60
const path = () => ({ org: organization.value })

const invitations: Resource<Invitation> = {
  path: 'invitations',
  title: 'Invitations',
  icon: 'mail',
  Tabs: MemberTabs,
  one: 'invitation',
  about: () =>
    isAdministrator()
      ? `Each is a link that lets one person join, until it expires.${auth.value?.mode === 'full' ? '' : ' Links work once people can sign in (AUTH_MODE=full).'}`
      : 'Only owners and administrators can invite people.',
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
    return html`<p role="status">Send this link to the person. It is not shown again.</p>
      <p><code class="secret">${url}</code> <${CopyButton} text=${url} /></p>`
  },
  remove: {
    label: 'Revoke',
    question: () => 'Revoke this invitation? Its link stops working.',
    run: ({ id }) => api.organizations.withdrawInvitation({ ...path(), invitation_id: id }),
  },
}

export const View = viewOf(invitations)
