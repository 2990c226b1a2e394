import type { LlmProviderType } from '../../../contract/llm-providers.ts'
import type { LlmProvider as ProviderRow } from '../../../prisma/generated/client.ts'
import { DomainError } from '../../kit/errors.ts'
import { checkReferences } from '../../kit/organization-secrets/check.ts'
import { nameIn, namesIn } from '../../kit/organization-secrets/references.ts'
import { openSecret } from '../../kit/organization-secrets/resolve.ts'
import { type EncryptedColumn, placeOf } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import type { Provider } from '../llm/catalogue.ts'
import { PUBLIC_URLS } from '../llm/providers/public-urls.ts'

/** Column of providers' keys. */
export const PROVIDER_KEYS: EncryptedColumn = {
  table: 'llm_providers',
  keys: ['organization_id', 'id'],
  column: 'api_key',
}

/** Columns of a provider's key. An empty key means no key. A reference to a secret is also found without decrypting. */
export const keyColumns = (
  { secrets }: Deps,
  organizationId: string,
  providerId: string,
  key: string,
): Pick<ProviderRow, 'apiKey' | 'keySecretName'> => ({
  apiKey: key === '' ? null : secrets.encrypt(key, placeOf(PROVIDER_KEYS, [organizationId, providerId])),
  keySecretName: nameIn(key) ?? null,
})

/** Describes a stored key that no process can read. */
export const damagedKey = ({ name }: Provider): string =>
  `The stored key of ${name} is damaged and cannot be read; set it again`

/** Returns the key for calling a provider. Throws `UnreadableSecret` and `SecretRefused`. */
export function keyOf(deps: Deps, organizationId: string, provider: Provider): string | undefined {
  if (provider.storedKey === null) return provider.apiKey
  const key = deps.secrets.decrypt(provider.storedKey, placeOf(PROVIDER_KEYS, [organizationId, provider.id]))
  const named = nameIn(key)
  const url = urlOf(provider)
  if (named === undefined || url === undefined) return key
  // The row may have been changed by a process that does not know references.
  const secret = provider.keySecret?.name === named ? provider.keySecret : undefined
  return openSecret(deps, { organizationId, url }, named, secret)
}

/** Returns the address that a provider's key is sent to. Undefined for simulated models. */
export function urlOf({ type, baseUrl }: { type: LlmProviderType; baseUrl?: string | null | undefined }) {
  return baseUrl ?? (type === 'llmsim' ? undefined : PUBLIC_URLS[type])
}

/** Throws `unprocessable` for a key that names a secret beside other text, or a secret that cannot be sent to it. */
export async function checkKey(
  db: Parameters<typeof checkReferences>[0],
  organizationId: string,
  key: string,
  url: string | undefined,
): Promise<void> {
  const isMixed = namesIn([key]).length > 0 && nameIn(key) === undefined
  if (isMixed) throw new DomainError('unprocessable', 'api_key: must be a key, or {{secret:NAME}} alone')
  await checkReferences(db, organizationId, [{ field: 'api_key', text: key }], url)
}
