import type { OrganizationMember } from 'agent-session-client'
import { readPages } from '../load.ts'
import { viewOf } from '../parts/list-view.ts'
import type { Resource } from '../parts/resource.ts'
import { Time } from '../parts/time.ts'
import { api, auth, identify, isAdministrator, organization, user } from '../service.ts'
import { html } from '../ui.ts'
import { MemberTabs, ROLE, RoleBadge } from './member-parts.ts'

const isSelf = ({ user_id }: OrganizationMember): boolean => user_id === user.value?.id
const path = () => ({ org: organization.value })

const members: Resource<OrganizationMember> = {
  path: 'members',
  title: 'Members',
  icon: 'people',
  Tabs: MemberTabs,
  one: 'member',
  about: () =>
    isAdministrator() ? 'People in this organization. An invitation lets others join.' : 'People in this organization.',
  mayWrite: isAdministrator,
  list: () => readPages((query) => api.organizations.listMembers({ ...path(), ...query })),
  idOf: ({ user_id }) => user_id,
  nameOf: ({ name, email }) => name || email,
  columns: [
    { title: 'E-mail', cell: ({ email }) => email },
    { title: 'Role', cell: ({ role }) => html`<${RoleBadge} role=${role} />` },
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
        ? 'Leave this organization? Your API keys for it stop working.'
        : `Remove ${member.name || member.email} from this organization? Their API keys for it stop working.`,
    run: async (member) => {
      await api.organizations.removeMember({ ...path(), user_id: member.user_id })
      if (isSelf(member)) await identify()
    },
  },
}

export const View = viewOf(members)
