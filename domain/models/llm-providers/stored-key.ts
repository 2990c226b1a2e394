import { type EncryptedColumn, placeOf } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import type { Provider } from '../llm/catalogue.ts'

/** Column of providers' keys. */
export const PROVIDER_KEYS: EncryptedColumn = {
  table: 'llm_providers',
  keys: ['organization_id', 'id'],
  column: 'api_key',
}

/** Encrypts a provider's key for its row. An empty key means no key. */
export const encryptKey = (
  { secrets }: Deps,
  organizationId: string,
  providerId: string,
  key: string,
): Uint8Array<ArrayBuffer> | null =>
  key === '' ? null : secrets.encrypt(key, placeOf(PROVIDER_KEYS, [organizationId, providerId]))

/** Describes a stored key that no process can read. */
export const damagedKey = ({ name }: Provider): string =>
  `The stored key of ${name} is damaged and cannot be read; set it again`

/** Returns the key for calling a provider. Throws `UnreadableSecret`. */
export const keyOf = ({ secrets }: Deps, organizationId: string, provider: Provider): string | undefined =>
  provider.storedKey === null
    ? provider.apiKey
    : secrets.decrypt(provider.storedKey, placeOf(PROVIDER_KEYS, [organizationId, provider.id]))
