import type { ProviderId } from '../../../contract/kit/ids.ts'
import type { LlmModel, LlmModelSource, LlmModelWithProvider } from '../../../contract/llm-models.ts'
import type { LlmModel as ModelRow, LlmProvider as ProviderRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { type PageStart, type Pages, pages } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { changeModel, changeProvider, mergeProvider, ownModel, type Provider } from '../llm/catalogue.ts'
import type { PredefinedModel } from '../llm/predefined.ts'
import { readDefaultModelId } from '../llm/read-models.ts'
import { requireProvider } from '../llm-providers/read.ts'
import { type FoundModel, presentModel, presentWithProvider } from './present.ts'

/** Models per page; each is at most 5 KiB with its labels and its profile. */
const MODELS_AT_ONCE = 50

export type ModelFilter = { source?: LlmModelSource | undefined; include_stale: boolean; favorites_only: boolean }

/** Lists the organization's models in catalogue order: predefined ones first, then by provider, each oldest first. */
export async function* listModels(deps: Deps, actor: Actor, filter: ModelFilter): Pages<LlmModelWithProvider> {
  const defaultId = await readDefaultModelId(deps, actor.organizationId)
  for await (const page of findModels(deps, actor, filter)) {
    yield page.map((found) => presentWithProvider(found, defaultId))
  }
}

/** Lists a provider's models in catalogue order. Throws `not_found`. */
export async function listModelsOf(
  deps: Deps,
  actor: Actor,
  providerId: ProviderId,
  { include_stale }: { include_stale: boolean },
): Promise<Pages<LlmModel>> {
  await requireProvider(deps, actor, providerId)
  const defaultId = await readDefaultModelId(deps, actor.organizationId)
  const found = findModels(deps, actor, { include_stale, favorites_only: false }, providerId)
  return (async function* () {
    for await (const page of found) yield page.map((one) => presentModel(one, defaultId))
  })()
}

async function* findModels(deps: Deps, actor: Actor, filter: ModelFilter, providerId?: string): Pages<FoundModel> {
  const predefined = await findAllPredefined(deps, actor, filter, providerId)
  if (predefined.length > 0) yield predefined
  if (filter.source !== 'predefined') yield* findStored(deps, actor, filter, providerId)
}

async function findAllPredefined(
  deps: Deps,
  { organizationId }: Actor,
  { source, favorites_only }: ModelFilter,
  providerId: string | undefined,
): Promise<FoundModel[]> {
  if (source !== undefined && source !== 'predefined') return []
  const known = deps.models.predefined.filter(({ id }) => providerId === undefined || id === providerId)
  const rows = await deps.db.llmProvider.findMany({
    where: { organizationId, id: { in: known.map(({ id }) => id) } },
    include: { models: { where: { source: 'predefined' } } },
  })
  const found = known.flatMap((predefined) => {
    const row = rows.find(({ id }) => id === predefined.id)
    return predefined.models.map((model) => toFound(model, changeProvider(predefined, row), row?.models ?? []))
  })
  return found.filter(({ row }) => !favorites_only || row?.isFavorite)
}

function toFound(predefined: PredefinedModel, provider: Provider, rows: ModelRow[]): FoundModel {
  const row = rows.find(({ id }) => id === predefined.id)
  return { model: changeModel(predefined, row, provider), row, isPredefined: true }
}

type StoredRow = ModelRow & { provider: ProviderRow }

const findStored = (
  deps: Deps,
  { organizationId }: Actor,
  { source, include_stale, favorites_only }: ModelFilter,
  providerId: string | undefined,
): Pages<FoundModel> =>
  pages({
    atOnce: MODELS_AT_ONCE,
    read: async ({ after, take }: PageStart<StoredRow>) => {
      const rows = await deps.db.llmModel.findMany({
        where: {
          organizationId,
          providerId,
          source: source ?? { not: 'predefined' },
          isStale: include_stale ? undefined : false,
          isFavorite: favorites_only ? true : undefined,
          ...(after === undefined ? {} : isAfter(after)),
        },
        include: { provider: true },
        orderBy: [{ providerId: 'asc' }, { id: 'asc' }],
        take,
      })
      return { rows, hasMore: rows.length === take }
    },
    present: (rows) =>
      rows.flatMap((row) => {
        const predefined = deps.models.predefined.find(({ id }) => id === row.providerId)
        const provider = mergeProvider(predefined, row.provider)
        const model = provider && ownModel(row, provider)
        return model === undefined ? [] : [{ model, row, isPredefined: false }]
      }),
  })

const isAfter = ({ providerId, id }: StoredRow) => ({
  providerId: { gte: providerId },
  OR: [{ providerId: { gt: providerId } }, { id: { gt: id } }],
})
