import { z } from 'zod'
import { DateTime, listOf, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { SessionId } from './kit/ids.ts'

const times = { created_at: DateTime, updated_at: DateTime }

export const KeyValueInfo = z.object({ key: z.string(), value: z.string(), ...times }).meta({ id: 'KeyValueInfo' })
export type KeyValueInfo = z.infer<typeof KeyValueInfo>

export const SecretInfo = z.object({ name: z.string(), ...times }).meta({ id: 'SecretInfo' })
export type SecretInfo = z.infer<typeof SecretInfo>

/** Largest value and largest secret, in bytes of UTF-8. */
export const MAX_VALUE_BYTES = 1024 * 1024
export const MAX_SECRET_BYTES = 64 * 1024

const PutValueRequest = z.object({ value: textUpTo(MAX_VALUE_BYTES) }).meta({ id: 'PutValueRequest' })
const PutSecretRequest = z.object({ value: textUpTo(MAX_SECRET_BYTES) }).meta({ id: 'PutSecretRequest' })

/** Name of a value or a secret, of any characters; slashes are encoded in a path. */
const StoredName = z
  .string()
  .min(1)
  .refine((name) => [...name].length <= 255, { error: 'must have at most 255 characters' })
  .meta({ maxLength: 255 })

const ofSession = z.object({ session_id: SessionId })
const ofValue = z.object({ session_id: SessionId, key: StoredName })
const ofSecret = z.object({ session_id: SessionId, name: StoredName })

export const storageEndpoints = group(
  { tag: 'storage', path: '/v1/sessions/{session_id}/storage', access: 'member' },
  {
    listKeys: {
      operationId: 'listKeys',
      method: 'GET',
      at: '/keys',
      summary: 'Lists the values that the agent keeps, by key',
      params: ofSession,
      responses: { 200: listOf(KeyValueInfo) },
    },
    listSecrets: {
      operationId: 'listSecrets',
      method: 'GET',
      at: '/secrets',
      summary: 'Lists the secrets that the agent keeps, by name',
      description: 'No operation returns their values.',
      params: ofSession,
      responses: { 200: listOf(SecretInfo) },
    },
    putKey: {
      operationId: 'putKey',
      method: 'PUT',
      at: '/keys/{key}',
      summary: 'Stores a value for the agent, and replaces any value with this key',
      params: ofValue,
      body: PutValueRequest,
      responses: { 204: null },
      errors: [409],
    },
    deleteKey: {
      operationId: 'deleteKey',
      method: 'DELETE',
      at: '/keys/{key}',
      summary: 'Deletes a value',
      params: ofValue,
      responses: { 204: null },
    },
    putSecret: {
      operationId: 'putSecret',
      method: 'PUT',
      at: '/secrets/{name}',
      summary: 'Stores a secret for the agent, and replaces any secret of this name',
      description: 'It is stored encrypted. Only the agent can read it.',
      params: ofSecret,
      body: PutSecretRequest,
      responses: { 204: null },
      errors: [409],
    },
    deleteSecret: {
      operationId: 'deleteSecret',
      method: 'DELETE',
      at: '/secrets/{name}',
      summary: 'Deletes a secret',
      params: ofSecret,
      responses: { 204: null },
    },
  },
)
