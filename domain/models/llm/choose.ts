import { Prisma } from '../../../prisma/generated/client.ts'
import type { UsableSecret } from '../../kit/organization-secrets/resolve.ts'
import {
  type CatalogueModel,
  findPredefined,
  mergeModel,
  mergeProvider,
  type StoredModel,
  type StoredProvider,
} from './catalogue.ts'
import type { PredefinedProvider } from './predefined.ts'

type KeySecret = (Omit<UsableSecret, 'value'> & { value: string }) | null

/** An organization's stored models and providers to choose from. Keys are in base64. */
export type Stored = {
  defaultModelId: string | null
  models: StoredModel[] | null
  providers: (Omit<StoredProvider, 'apiKey' | 'keySecret'> & { apiKey: string | null; keySecret?: KeySecret })[] | null
}

/**
 * Returns SQL for `Stored` as one JSON value: the models with the given ids and the organization's default, and their
 * providers. The SQL around it names the organization's row `o`.
 */
export const storedSql = (predefined: PredefinedProvider[], ids: Prisma.Sql[]): Prisma.Sql => {
  const wanted = Prisma.sql`m.organization_id = o.id AND m.id IN (${Prisma.join([...ids, Prisma.sql`o.default_model_id`])})`
  return Prisma.sql`json_build_object(
    'defaultModelId', o.default_model_id,
    'models', (
      SELECT json_agg(json_build_object(
        'id', m.id, 'providerId', m.provider_id, 'name', m.name, 'displayName', m.display_name, 'status', m.status))
      FROM llm_models m WHERE ${wanted}
    ),
    'providers', (
      SELECT json_agg(json_build_object(
        'id', p.id, 'name', p.name, 'type', p.type, 'baseUrl', p.base_url, 'apiKey', encode(p.api_key, 'base64'),
        'status', p.status, 'keySecret', (
          SELECT json_build_object('name', k.name, 'hosts', k.hosts, 'value', encode(k.value, 'base64'))
          FROM organization_secrets k WHERE k.organization_id = o.id AND k.name = p.key_secret_name)))
      FROM llm_providers p WHERE p.organization_id = o.id
        AND (p.id = ANY (${predefined.map(({ id }) => id)}::uuid[]) OR p.id IN (SELECT m.provider_id FROM llm_models m WHERE ${wanted}))
    )
  )`
}

/** Finds a model in `stored`. Undefined if the organization does not have it. */
export function findModel(
  predefined: PredefinedProvider[],
  stored: Stored,
  modelId: string,
): CatalogueModel | undefined {
  const known = findPredefined(predefined, modelId)
  const row = stored.models?.find(({ id }) => id === modelId)
  const providerId = known?.provider.id ?? row?.providerId
  const providerRow = stored.providers?.find(({ id }) => id === providerId)
  const provider = mergeProvider(
    predefined.find(({ id }) => id === providerId),
    providerRow && {
      ...providerRow,
      apiKey: fromBase64(providerRow.apiKey),
      keySecret: providerRow.keySecret && { ...providerRow.keySecret, value: fromBase64(providerRow.keySecret.value) },
    },
  )
  return provider && mergeModel(known?.model, row, provider)
}

/**
 * Chooses the first active model of the named ones, else the default: the organization's, then the first model of each
 * predefined provider. Undefined if all of them are disabled or gone.
 */
export function chooseModel(
  predefined: PredefinedProvider[],
  stored: Stored,
  ids: (string | null | undefined)[] = [],
): CatalogueModel | undefined {
  const defaults = [stored.defaultModelId, ...predefined.map(({ models: [first] }) => first?.id)]
  for (const id of [...ids, ...defaults]) {
    const model = id ? findModel(predefined, stored, id) : undefined
    if (model?.isActive) return model
  }
  return undefined
}

function fromBase64(text: string): Uint8Array<ArrayBuffer>
function fromBase64(text: string | null): Uint8Array<ArrayBuffer> | null
function fromBase64(text: string | null): Uint8Array<ArrayBuffer> | null {
  return text === null ? null : new Uint8Array(Buffer.from(text, 'base64'))
}
