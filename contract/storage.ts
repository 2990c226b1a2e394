import { z } from 'zod'
import { DateTime, listOf } from './common.ts'
import { group } from './endpoint.ts'
import { SessionId } from './ids.ts'

const times = { created_at: DateTime, updated_at: DateTime }

export const KeyValueInfo = z.object({ key: z.string(), value: z.string(), ...times }).meta({ id: 'KeyValueInfo' })
export type KeyValueInfo = z.infer<typeof KeyValueInfo>

export const SecretInfo = z.object({ name: z.string(), ...times }).meta({ id: 'SecretInfo' })
export type SecretInfo = z.infer<typeof SecretInfo>

const ofSession = z.object({ session_id: SessionId })

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
  },
)
