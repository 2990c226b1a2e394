import type { WebhookId } from '../../../contract/kit/ids.ts'
import type {
  CreateWebhookRequest,
  RotateWebhookSecretRequest,
  Webhook,
  WebhookWithSecret,
} from '../../../contract/webhooks.ts'
import type { Prisma, Webhook as WebhookRow } from '../../../prisma/generated/client.ts'
import { requireActiveAgent } from '../../agents/check.ts'
import type { Actor } from '../../kit/actor.ts'
import { audit, givenFields } from '../../kit/audit/entry.ts'
import { checkCalledUrl } from '../../kit/called-url.ts'
import { createOnce } from '../../kit/create-once.ts'
import { conflict, notFound, quotaExceeded } from '../../kit/errors.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { asUuid, fromId } from '../../kit/ids.ts'
import { lockOrganization } from '../../kit/lock-organization.ts'
import type { Deps } from './deps.ts'
import { presentWebhook } from './present.ts'
import { requireWebhook } from './read.ts'
import { encryptSecrets, newSecret, readSecrets } from './secrets.ts'

/** Time for which the former secret signs as well. */
const OVERLAP_MS = 24 * 60 * 60_000

/** A webhook, with the id of the secret that a request has made. The secret itself is not in stored answers. */
export type MadeSecret = { webhook: Webhook; secretId: string }

/**
 * Creates a webhook. Throws `invalid` for an address that may not be called and an unknown agent, and `conflict` beyond
 * the quota.
 */
export async function createWebhook(
  deps: Deps,
  actor: Actor,
  input: CreateWebhookRequest,
  attempt: CreationAttempt,
): Promise<MadeSecret> {
  const { organizationId } = actor
  const row = await createOnce(attempt, {
    find: (id) => deps.db.webhook.findFirst({ where: { id, organizationId, deletedAt: null } }),
    insert: async (id) => {
      if (input.agent_id != null) await requireActiveAgent(deps, actor, input.agent_id, 'agent_id')
      const data = {
        id,
        organizationId,
        url: await checkCalledUrl(deps, input.url, 'url'),
        events: [...new Set(input.events)],
        agentId: input.agent_id ?? null,
        description: input.description ?? null,
        secrets: encryptSecrets(deps, id, { current: input.secret ?? newSecret() }),
        secretId: id,
      }
      return deps.db.$transaction(async (tx) => {
        const row = await insertWithin(deps, tx, data)
        if (row !== undefined)
          await audit(tx, actor, { action: 'webhook.create', target: id, details: givenFields(input) })
        return row
      })
    },
  })
  return { webhook: presentWebhook(row), secretId: row.id }
}

/** Inserts a webhook; undefined when another run of the request has created it. Throws `conflict`. */
async function insertWithin(
  { quotas }: Deps,
  tx: Prisma.TransactionClient,
  data: Prisma.WebhookCreateManyInput,
): Promise<WebhookRow | undefined> {
  const { organizationId } = data
  await lockOrganization(tx, organizationId)
  if ((await tx.webhook.count({ where: { organizationId, deletedAt: null } })) >= quotas.webhooks) {
    throw quotaExceeded(`The organization has ${quotas.webhooks} webhooks, which is the limit; delete one first`)
  }
  const [row] = await tx.webhook.createManyAndReturn({ data: [data], skipDuplicates: true })
  return row
}

/**
 * Replaces the secret. The former one signs as well for a day; the one before it no longer does. Throws `not_found`.
 */
export async function rotateSecret(
  deps: Deps,
  actor: Actor,
  id: WebhookId,
  input: RotateWebhookSecretRequest,
  attempt: CreationAttempt,
): Promise<MadeSecret> {
  const { organizationId } = actor
  const row = await createOnce(attempt, {
    find: (secretId) => deps.db.webhook.findFirst({ where: { id, organizationId, secretId, deletedAt: null } }),
    insert: (secretId) =>
      deps.db.$transaction(async (tx) => {
        await tx.$queryRaw`SELECT 1 FROM webhooks WHERE id = ${id}::uuid FOR NO KEY UPDATE`
        const before = await tx.webhook.findFirst({ where: { id, organizationId, deletedAt: null } })
        if (before === null) throw notFound('Webhook')
        // Another run of the request has made it.
        if (before.secretId === secretId) return before
        const current = input.secret ?? newSecret()
        const secrets = encryptSecrets(deps, id, { current, former: readSecrets(deps, before).current })
        const formerSecretUntil = new Date(Date.now() + OVERLAP_MS)
        await audit(tx, actor, { action: 'webhook.rotate', target: id })
        return tx.webhook.update({
          where: { id },
          data: { secrets, secretId, formerSecretUntil, updatedAt: new Date() },
        })
      }),
  })
  return { webhook: presentWebhook(row), secretId: row.secretId }
}

/** Presents the secret to the request that made it. Throws `conflict` when it was replaced since. */
export async function presentMadeSecret(
  deps: Deps,
  actor: Actor,
  { webhook, secretId }: MadeSecret,
): Promise<WebhookWithSecret> {
  const row = await requireWebhook(deps, actor, asUuid(fromId(webhook.id)))
  if (row.secretId === secretId) return { ...webhook, secret: readSecrets(deps, row).current }
  throw conflict('The secret that this request made was replaced since; rotate it again for a new one')
}
