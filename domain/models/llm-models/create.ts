import type { ProviderId } from '../../../contract/kit/ids.ts'
import type { CreateLlmModelRequest, LlmModel } from '../../../contract/llm-models.ts'
import type { LlmModel as ModelRow, Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit } from '../../kit/audit/entry.ts'
import { createOnce } from '../../kit/create-once.ts'
import { conflict, quotaExceeded } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { asUuid, toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { type FoundProvider, lockProvider, requireProvider } from '../llm-providers/read.ts'
import { checkModelName } from './check.ts'
import { setDefault } from './default.ts'
import { getModelAlone } from './read.ts'

/**
 * Adds a model to a provider. Throws `not_found`, `invalid` if the simulator does not have the model or if it cannot be
 * the default, and `conflict` when the provider has it already or is full.
 */
export async function createModel(
  deps: Deps,
  actor: Actor,
  providerId: ProviderId,
  input: CreateLlmModelRequest,
  attempt: CreationAttempt,
): Promise<LlmModel> {
  const { organizationId } = actor
  const found = await requireProvider(deps, actor, providerId)
  const { id } = await createOnce(attempt, {
    find: (id) => deps.db.llmModel.findUnique({ where: { organizationId_id: { organizationId, id } } }),
    insert: (id) => {
      checkModelName(found.provider.type, input.model_id)
      return deps.db.$transaction((tx) => insertModel(deps, tx, actor, found, { ...input, id }))
    },
  })
  return getModelAlone(deps, actor, asUuid(id))
}

async function insertModel(
  { quotas }: Deps,
  tx: Prisma.TransactionClient,
  actor: Actor,
  found: FoundProvider,
  input: CreateLlmModelRequest & { id: string },
): Promise<ModelRow | undefined> {
  const { organizationId } = actor
  const { provider } = found
  await lockProvider(tx, actor, found)
  await requireNewName(tx, actor, found, input.model_id)
  if ((await tx.llmModel.count({ where: { organizationId, providerId: provider.id } })) >= quotas.llmModels) {
    throw quotaExceeded(`The provider has ${quotas.llmModels} models, which is the limit; delete one first`)
  }
  const { id, model_id: name, display_name: displayName, capabilities = [], is_favorite: isFavorite = false } = input
  const data = { id, organizationId, providerId: provider.id, name, displayName, capabilities, isFavorite }
  const [row] = await tx.llmModel.createManyAndReturn({ data: [{ ...data, source: 'manual' }], skipDuplicates: true })
  if (row !== undefined && input.is_default) await setDefault(tx, actor, { id, isActive: provider.isActive })
  if (row !== undefined) await audit(tx, actor, { action: 'llm_model.create', target: id })
  return row
}

/** Throws `conflict` when the provider has a model of this name. The provider is locked. */
export async function requireNewName(
  tx: Prisma.TransactionClient,
  { organizationId }: Actor,
  { provider, predefined }: FoundProvider,
  name: string,
): Promise<void> {
  const known = predefined?.models.find((model) => model.name === name)
  const where = { organizationId, providerId: provider.id, name }
  const id = known?.id ?? (await tx.llmModel.findFirst({ where, select: { id: true } }))?.id
  if (id !== undefined) throw conflict(`model_id: the provider has this model already, as ${toId('model', id)}`)
}
