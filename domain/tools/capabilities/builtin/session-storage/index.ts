import type { Capability } from '../../capability.ts'
import { kvStore } from './kv-store.ts'
import { secretStore } from './secret-store.ts'

/**
 * Values and secrets of the session. Both tools may run again: a repeated call changes nothing and returns the first
 * answer.
 */
export const sessionStorage: Capability = {
  id: 'session_storage',
  name: 'Storage',
  description: 'Gives each session values and secrets by name.',
  status: 'available',
  category: 'data',
  icon: 'key',
  dependencies: [],
  features: ['secrets', 'key_value'],
  systemPrompt: `kv_store keeps values for later turns of this session; its user can read them. secret_store is for credentials, such as
API keys and passwords, and for nothing else. Never keep a credential with kv_store. Never repeat the value of a secret
in text: where it must be mentioned, use its name.`,
  tools: [kvStore, secretStore],
}
