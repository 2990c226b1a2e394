import type { LlmProvider } from '../../../contract/llm-providers.ts'
import type { LlmProvider as ProviderRow } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'
import type { Provider } from '../llm/catalogue.ts'

/** Creation time of predefined providers and models, as in their ids. */
export const PREDEFINED_AT = new Date('2024-11-16T00:00:00.000Z')

/** Presents a provider with its row; an unchanged predefined provider has no row. */
export const presentProvider = (provider: Provider, row: ProviderRow | undefined): LlmProvider => ({
  id: toId('provider', provider.id),
  name: provider.name,
  provider_type: provider.type,
  base_url: provider.baseUrl ?? null,
  api_key_set: provider.apiKey !== undefined || provider.storedKey !== null,
  status: provider.isActive ? 'active' : 'disabled',
  is_predefined: provider.isPredefined,
  last_synced_at: row?.lastSyncedAt?.toISOString() ?? null,
  created_at: (provider.isPredefined ? PREDEFINED_AT : (row?.createdAt ?? PREDEFINED_AT)).toISOString(),
  updated_at: (row?.updatedAt ?? PREDEFINED_AT).toISOString(),
})
