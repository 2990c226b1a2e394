import type { CreateLlmProviderRequest, LlmProvider } from '../../../contract/llm-providers.ts'
import type { Prisma, LlmProvider as ProviderRow } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { createOnce } from '../../kit/create-once.ts'
import { invalid, quotaExceeded } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { asUuid } from '../../kit/ids.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'
import { MASK } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import { checkBaseUrl } from './check.ts'
import { getProvider } from './read.ts'
import { checkKey, keyColumns, urlOf } from './stored-key.ts'

/** Adds a provider. Throws `invalid` for a forbidden address, and `conflict` beyond the quota. */
export async function createProvider(
  deps: Deps,
  actor: Actor,
  input: CreateLlmProviderRequest,
  attempt: CreationAttempt,
): Promise<LlmProvider> {
  const { organizationId } = actor
  if (input.api_key === MASK) throw invalid(`api_key: must be a key; ${MASK} keeps a stored one, and there is none`)
  const { id } = await createOnce(attempt, {
    find: (id) => deps.db.llmProvider.findUnique({ where: { organizationId_id: { organizationId, id } } }),
    insert: async (id) => {
      const baseUrl = await checkBaseUrl(deps, input.base_url ?? '')
      const key = input.api_key ?? ''
      await checkKey(deps.db, organizationId, key, urlOf({ type: input.provider_type, baseUrl }))
      const data = {
        id,
        organizationId,
        name: input.name,
        type: input.provider_type,
        baseUrl,
        ...keyColumns(deps, organizationId, id, key),
      }
      return deps.db.$transaction((tx) => insertWithin(deps, tx, actor, data))
    },
  })
  return getProvider(deps, actor, asUuid(id))
}

/** Inserts a provider; undefined if another run of the request has created it. Throws `conflict` at the quota. */
async function insertWithin(
  { models, quotas }: Deps,
  tx: Prisma.TransactionClient,
  actor: Actor,
  data: Prisma.LlmProviderCreateManyInput & { id: string },
): Promise<ProviderRow | undefined> {
  const { id, organizationId } = data
  // The lock makes an organization's creations sequential, so that the quota holds.
  await lockOrganization(tx, organizationId)
  const isOwn = { organizationId, id: { notIn: models.predefined.map(({ id }) => id) } }
  if ((await tx.llmProvider.count({ where: isOwn })) >= quotas.llmProviders) {
    throw quotaExceeded(
      `The organization has ${quotas.llmProviders} LLM providers, which is the limit; delete one first`,
    )
  }
  const [row] = await tx.llmProvider.createManyAndReturn({ data: [data], skipDuplicates: true })
  if (row !== undefined) await audit(tx, actor, { action: 'llm_provider.create', target: id })
  return row
}
