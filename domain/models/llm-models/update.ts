import type { ModelId } from '../../../contract/kit/ids.ts'
import type { LlmModel, UpdateLlmModelRequest } from '../../../contract/llm-models.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit, givenFields } from '../../kit/audit/entry.ts'
import { invalid, notFound } from '../../kit/errors.ts'
import type { Deps } from '../deps.ts'
import { lockProvider } from '../llm-providers/read.ts'
import { checkModelName } from './check.ts'
import { requireNewName } from './create.ts'
import { setDefault, unsetDefault } from './default.ts'
import { getModelAlone, requireModel } from './read.ts'

type Found = Awaited<ReturnType<typeof requireModel>>

/**
 * Changes a model, from the next model call on. Throws `not_found`, `invalid` for a model unknown to the simulator, a
 * predefined model's name and a disabled default, and `conflict` for a taken name.
 */
export async function patchModel(
  deps: Deps,
  actor: Actor,
  id: ModelId,
  input: UpdateLlmModelRequest,
): Promise<LlmModel> {
  const found = await requireModel(deps, actor, id)
  const name = input.model_id != null && input.model_id !== found.model.name ? input.model_id : undefined
  if (name !== undefined && found.isPredefined) throw invalid('model_id: must stay as it is for a predefined model')
  if (name !== undefined) checkModelName(found.model.provider.type, name)
  await deps.db.$transaction(async (tx) => {
    await lockProvider(tx, actor, found.of)
    if (name !== undefined) await requireNewName(tx, actor, found.of, name)
    const status = await writeModel(tx, actor, found, { ...fieldsOf(input), name })
    if (input.is_default === false) await unsetDefault(tx, actor, id)
    if (input.is_default) {
      await setDefault(tx, actor, { id, isActive: status === 'active' && found.model.provider.isActive })
    }
    await audit(tx, actor, { action: 'llm_model.update', target: id, details: givenFields(input) })
  })
  return getModelAlone(deps, actor, id)
}

const fieldsOf = (input: UpdateLlmModelRequest) => ({
  displayName: input.display_name ?? undefined,
  capabilities: input.capabilities ?? undefined,
  isFavorite: input.is_favorite ?? undefined,
  status: input.status ?? undefined,
})

/** Writes the fields and returns the model's status. Throws `not_found` if it has been deleted. */
async function writeModel(
  tx: Prisma.TransactionClient,
  { organizationId }: Actor,
  { model, isPredefined }: Found,
  fields: ReturnType<typeof fieldsOf> & { name: string | undefined },
) {
  const { id, provider } = model
  if (isPredefined) {
    const { name: _its, ...changed } = fields
    const where = { organizationId_id: { organizationId, id } }
    const create = { id, organizationId, providerId: provider.id, source: 'predefined', ...changed } as const
    return (await tx.llmModel.upsert({ where, create, update: changed })).status
  }
  const [row] = await tx.llmModel.updateManyAndReturn({ where: { organizationId, id }, data: fields })
  if (row === undefined) throw notFound('Model')
  return row.status
}

/** Deletes a model. Throws `not_found`, and `invalid` for a predefined model. */
export async function deleteModel(deps: Deps, actor: Actor, id: ModelId): Promise<void> {
  const { isPredefined } = await requireModel(deps, actor, id)
  if (isPredefined) throw invalid('This model comes with the service; PATCH its status to "disabled" to do without it')
  await deps.db.$transaction(async (tx) => {
    await unsetDefault(tx, actor, id)
    const { count } = await tx.llmModel.deleteMany({ where: { organizationId: actor.organizationId, id } })
    if (count === 0) throw notFound('Model')
    await audit(tx, actor, { action: 'llm_model.delete', target: id })
  })
}
