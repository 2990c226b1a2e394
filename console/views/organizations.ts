import type { CreateOrganizationRequest, OrganizationResponse, UpdateOrganizationRequest } from 'agent-session-client'
import { Badge } from '../parts/badge.ts'
import { viewOf } from '../parts/list-view.ts'
import type { Resource } from '../parts/resource.ts'
import { Time } from '../parts/time.ts'
import { api, chooseOrganization, identify, organization, user } from '../service.ts'
import { html } from '../ui.ts'
import { mayLeave } from '../unsaved.ts'
import { RoleBadge } from './member-parts.ts'

/** Changes the organizations of the user, and reads them again. */
async function andIdentify<T>(work: Promise<T>): Promise<T> {
  const result = await work
  await identify()
  return result
}

const roleIn = ({ id }: OrganizationResponse): string | undefined =>
  user.value?.organizations.find(({ public_id }) => public_id === id)?.role

const organizations: Resource<OrganizationResponse> = {
  path: 'organizations',
  title: 'Organizations',
  icon: 'organization',
  one: 'organization',
  about: 'Each organization has its own agents, sessions and settings. Only its members see them.',
  list: async () => (await api.organizations.list()).data,
  mayWrite: (item) => item === undefined || ['owner', 'admin'].includes(roleIn(item) ?? ''),
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    {
      title: 'Your role',
      cell: (item) => html`<span class="badges"><${RoleBadge} role=${roleIn(item) ?? ''} />
        ${item.id === organization.value && html`<${Badge} status="Current" icon="check" tone="good" />`}</span>`,
    },
    { title: 'Created', cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
  ],
  fields: () => [{ name: 'name', label: 'Name', kind: 'text', isRequired: true }],
  valuesOf: ({ name }) => ({ name }),
  create: (values) => andIdentify(api.organizations.create(values as CreateOrganizationRequest)),
  update: ({ id }, changes) =>
    andIdentify(api.organizations.update({ org: id, ...(changes as UpdateOrganizationRequest) })),
  actions: [
    {
      label: 'Switch',
      icon: 'organization',
      isForAll: true,
      isOffered: ({ id }) => id !== organization.value,
      run: async ({ id }) => {
        if (mayLeave()) chooseOrganization(id)
      },
    },
  ],
}

export const View = viewOf(organizations)
