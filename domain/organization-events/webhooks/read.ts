import type { WebhookId } from '../../../contract/kit/ids.ts'
import type { Webhook } from '../../../contract/webhooks.ts'
import type { Webhook as WebhookRow } from '../../../prisma/generated/client.ts'
import type { OrganizationScope } from '../../kit/actor.ts'
import { notFound } from '../../kit/errors.ts'
import type { All } from '../../kit/lists.ts'
import type { Deps } from './deps.ts'
import { presentWebhook } from './present.ts'

/** Lists the organization's webhooks, newest first. */
export async function listWebhooks(deps: Deps, { organizationId }: OrganizationScope): Promise<All<Webhook>> {
  const rows = await deps.db.webhook.findMany({ where: { organizationId, deletedAt: null }, orderBy: { id: 'desc' } })
  return rows.map(presentWebhook)
}

/** Returns a webhook. Throws `not_found`. */
export const getWebhook = async (deps: Deps, scope: OrganizationScope, id: WebhookId): Promise<Webhook> =>
  presentWebhook(await requireWebhook(deps, scope, id))

/** Throws `not_found`. */
export async function requireWebhook(
  deps: Deps,
  { organizationId }: OrganizationScope,
  id: string,
): Promise<WebhookRow> {
  const row = await deps.db.webhook.findFirst({ where: { id, organizationId, deletedAt: null } })
  if (row === null) throw notFound('Webhook')
  return row
}
