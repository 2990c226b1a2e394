import { webhookEndpoints } from '../../contract/webhooks.ts'
import type { Deps } from '../../domain/deps.ts'
import { createWebhook, presentMadeSecret, rotateSecret } from '../../domain/organization-events/webhooks/create.ts'
import { listDeliveries, redeliver, testWebhook } from '../../domain/organization-events/webhooks/deliveries.ts'
import { getWebhook, listWebhooks } from '../../domain/organization-events/webhooks/read.ts'
import { deleteWebhook, patchWebhook } from '../../domain/organization-events/webhooks/update.ts'
import { type Handle, NOT_STORED, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function webhookRoutes(handle: Handle, deps: Deps): void {
  handle(webhookEndpoints.list, async ({ actor }) => reply(200, { data: await listWebhooks(deps, actor) }))
  handle(webhookEndpoints.create, async ({ actor, body, once }) => {
    // The answer stored for repetitions of the request does not contain the secret.
    const made = await once((attempt) => createWebhook(deps, actor, body, attempt))
    return reply(201, await presentMadeSecret(deps, actor, made), NOT_STORED)
  })
  handle(webhookEndpoints.get, async ({ actor, params }) =>
    reply(200, await getWebhook(deps, actor, params.webhook_id)),
  )
  handle(webhookEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchWebhook(deps, actor, params.webhook_id, body)),
  )
  handle(webhookEndpoints.delete, async ({ actor, params }) => {
    await deleteWebhook(deps, actor, params.webhook_id)
    return reply(204, undefined)
  })
  handle(webhookEndpoints.rotate, async ({ actor, params, body, once }) => {
    const made = await once((attempt) => rotateSecret(deps, actor, params.webhook_id, body, attempt))
    return reply(200, await presentMadeSecret(deps, actor, made), NOT_STORED)
  })
  handle(webhookEndpoints.test, async ({ actor, params, once }) =>
    reply(201, await once((attempt) => testWebhook(deps, actor, params.webhook_id, attempt))),
  )
  handle(webhookEndpoints.deliveries, async ({ actor, params, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listDeliveries(deps, actor, params.webhook_id, query))),
  )
  handle(webhookEndpoints.redeliver, async ({ actor, params }) => reply(200, await redeliver(deps, actor, params)))
}
