import { Tabs } from '../parts/tabs.ts'
import { html, type VNode } from '../ui.ts'

export const ROLE = {
  name: 'role',
  label: 'Role',
  kind: 'choice' as const,
  isRequired: true,
  options: ['member', 'admin', 'owner'].map((value) => ({ value, label: value })),
}

/** Links between the members of an organization and the invitations to it. */
export const MemberTabs = (): VNode =>
  html`<${Tabs} label="People" places=${{ members: 'Members', invitations: 'Invitations' }} />`
