import { z } from 'zod'
import { DateTime, listOf, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { MAX_HEADER_VALUE_BYTES } from './kit/sent-headers.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/
const MAX_HOSTS = 20
/** Longest name of a host, with a wildcard and a port. */
const MAX_HOST_BYTES = 263

const Name = z
  .string()
  .regex(NAME, { error: 'must be a letter or _, and then up to 63 letters, digits, _ or -' })
  .meta({ examples: ['GITHUB_TOKEN'] })

export const OrganizationSecret = z
  .object({
    name: z.string(),
    hosts: z.array(z.string()),
    created_at: DateTime,
    updated_at: DateTime.meta({ description: 'Time at which the value or the hosts were last set.' }),
  })
  .meta({ id: 'OrganizationSecret' })
export type OrganizationSecret = z.infer<typeof OrganizationSecret>

const PutOrganizationSecretRequest = z
  .object({
    value: textUpTo(MAX_HEADER_VALUE_BYTES)
      .trim()
      .min(1, { error: 'must not be empty' })
      .regex(/^[\x20-\x7e]*$/, { error: 'must be printable ASCII characters in one line' })
      .meta({ description: 'Stored encrypted and never shown. Spaces around it are removed.' }),
    hosts: z.array(textUpTo(MAX_HOST_BYTES)).min(1, { error: 'must name at least one host' }).max(MAX_HOSTS).meta({
      description:
        'Hosts to which the secret may be sent: api.example.com, *.example.com for all names below it, or either with a port. Without a port only by https; with one on that port, also by http.',
    }),
  })
  .meta({ id: 'PutOrganizationSecretRequest' })
export type PutOrganizationSecretRequest = z.infer<typeof PutOrganizationSecretRequest>

const params = z.object({ name: Name })

export const secretEndpoints = group(
  { tag: 'organization-secrets', path: '/v1/secrets', access: 'admin' },
  {
    list: {
      operationId: 'listOrganizationSecrets',
      method: 'GET',
      access: 'member',
      summary: "Lists the organization's secrets, by name",
      description: 'No operation returns their values.',
      responses: { 200: listOf(OrganizationSecret) },
    },
    put: {
      operationId: 'putOrganizationSecret',
      method: 'PUT',
      at: '/{name}',
      summary: 'Stores a secret, or replaces its value and hosts',
      description:
        'Headers of MCP servers, schedules and web_fetch, and keys of providers, name it as {{secret:NAME}}. It is put in place when a request to one of its hosts is sent.',
      params,
      body: PutOrganizationSecretRequest,
      responses: { 200: OrganizationSecret },
      errors: [409],
    },
    delete: {
      operationId: 'deleteOrganizationSecret',
      method: 'DELETE',
      at: '/{name}',
      summary: 'Deletes a secret; requests that name it fail from then on',
      params,
      responses: { 204: null },
    },
  },
)
