import type { CreateOrganizationRequest, OrganizationResponse, UpdateOrganizationRequest } from 'agent-session-client'
import { Time } from '../parts/page.ts'
import type { Resource } from '../parts/resource.ts'
import { api, chooseOrganization, identify, organization } from '../service.ts'
import { html } from '../ui.ts'

/** Does something that changes the organizations of the user, and reads them again. */
async function andIdentify<T>(work: Promise<T>): Promise<T> {
  const result = await work
  await identify()
  return result
}

export const organizations: Resource<OrganizationResponse> = {
  path: 'organizations',
  title: 'Organizations',
  one: 'organization',
  about: 'Everything belongs to one organization, and only its members see it.',
  list: async () => (await api.listOrganizations()).data,
  idOf: ({ id }) => id,
  nameOf: ({ name }) => name,
  columns: [
    { title: '', cell: ({ id }) => id === organization.value && html`<mark>shown</mark>` },
    { title: 'Made', cell: ({ created_at }) => html`<${Time} at=${created_at} />` },
  ],
  fields: () => [{ name: 'name', label: 'Name', kind: 'text', isRequired: true }],
  valuesOf: ({ name }) => ({ name }),
  create: (values) => andIdentify(api.createOrganization({ body: values as CreateOrganizationRequest })),
  update: ({ id }, changes) =>
    andIdentify(api.updateOrganization({ path: { org: id }, body: changes as UpdateOrganizationRequest })),
  actions: [
    {
      label: 'Show it',
      isOffered: ({ id }) => id !== organization.value,
      run: async ({ id }) => chooseOrganization(id),
    },
  ],
}
