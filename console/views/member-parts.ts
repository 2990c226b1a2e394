import { Badge } from '../parts/badge.ts'
import { optionsOf } from '../parts/choice.ts'
import { Tabs } from '../parts/tabs.ts'
import { html, type VNode } from '../ui.ts'

export const ROLE = {
  name: 'role',
  label: 'Role',
  kind: 'choice' as const,
  isRequired: true,
  options: optionsOf({
    member: 'Member: uses agents and sessions',
    admin: 'Administrator: also changes settings, providers and people',
    owner: 'Owner: also appoints owners',
  }),
}

const ROLES: Record<string, string> = { member: 'Member', admin: 'Administrator', owner: 'Owner' }

/** Role of a person in an organization. */
export const RoleBadge = ({ role }: { role: string }): VNode =>
  html`<${Badge} status=${ROLES[role] ?? role} icon="user" tone=${role === 'member' ? 'quiet' : 'brand'} />`

/** Links between the members of an organization and the invitations to it. */
export const MemberTabs = (): VNode =>
  html`<${Tabs} label="People" places=${{ members: 'Members', invitations: 'Invitations' }} />`
