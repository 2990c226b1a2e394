import type { LlmProvider } from '../../../contract/llm-providers.ts'
import type { LlmProvider as ProviderRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import type { All } from '../../kit/lists.ts'
import type { Deps } from '../deps.ts'
import { changeProvider, ownProvider } from '../llm/catalogue.ts'
import { presentProvider } from './present.ts'

/** Lists the organization's providers, newest first, and then the predefined ones. */
export async function listProviders(deps: Deps, { organizationId }: Actor): Promise<All<LlmProvider>> {
  const rows = await deps.db.llmProvider.findMany({
    where: { organizationId },
    orderBy: { id: 'desc' },
    take: deps.quotas.llmProviders + deps.models.predefined.length,
  })
  const { predefined } = deps.models
  const rowOf = (id: string) => rows.find((row) => row.id === id)
  return [
    ...rows.flatMap((row) => presentOwn(row)),
    ...predefined.map((known) => presentProvider(changeProvider(known, rowOf(known.id)), rowOf(known.id))),
  ]
}

function presentOwn(row: ProviderRow): LlmProvider[] {
  const provider = ownProvider(row)
  return provider === undefined ? [] : [presentProvider(provider, row)]
}
