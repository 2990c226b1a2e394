import type { WebhookId } from '../../../contract/kit/ids.ts'
import type { UpdateWebhookRequest, Webhook } from '../../../contract/webhooks.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { requireActiveAgent } from '../../agents/check.ts'
import type { Actor } from '../../kit/actor.ts'
import { audited, givenFields } from '../../kit/audit/entry.ts'
import { checkCalledUrl } from '../../kit/called-url.ts'
import { notFound } from '../../kit/errors.ts'
import type { Deps } from './deps.ts'
import { wakeLanesSoon } from './lanes.ts'
import { presentWebhook } from './present.ts'

/**
 * Changes a webhook. A new address is tried at once with what is pending. Throws `not_found`, and `invalid` as for a new
 * webhook.
 */
export async function patchWebhook(
  deps: Deps,
  actor: Actor,
  id: WebhookId,
  input: UpdateWebhookRequest,
): Promise<Webhook> {
  if (input.agent_id) await requireActiveAgent(deps, actor, input.agent_id, 'agent_id')
  const data: Prisma.WebhookUpdateManyMutationInput & { agentId?: string | null } = {
    ...(input.url != null && { url: await checkCalledUrl(deps, input.url, 'url') }),
    ...(input.events != null && { events: [...new Set(input.events)] }),
    ...(input.agent_id != null && { agentId: input.agent_id || null }),
    ...(input.description != null && { description: input.description }),
    ...(input.enabled != null && { enabled: input.enabled, disabledReason: null }),
    updatedAt: new Date(),
  }
  const where = { id, organizationId: actor.organizationId, deletedAt: null }
  const told = { action: 'webhook.update', target: id, details: givenFields(input) } as const
  const changed = await audited(deps, actor, told, async (tx) => {
    const [row] = await tx.webhook.updateManyAndReturn({ where, data })
    if (row === undefined) throw notFound('Webhook')
    return row
  })
  if (input.url != null || input.enabled === false) await wakeLanesSoon(deps, id)
  return presentWebhook(changed)
}

/** Deletes a webhook: its workflows end soon, and its deliveries are removed later. Throws `not_found`. */
export async function deleteWebhook(deps: Deps, actor: Actor, id: WebhookId): Promise<void> {
  await audited(deps, actor, { action: 'webhook.delete', target: id }, async (tx) => {
    const { count } = await tx.webhook.updateMany({
      where: { id, organizationId: actor.organizationId, deletedAt: null },
      data: { enabled: false, deletedAt: new Date(), url: '', description: null, secrets: null },
    })
    if (count === 0) throw notFound('Webhook')
  })
  await wakeLanesSoon(deps, id)
}
