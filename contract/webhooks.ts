import { z } from 'zod'
import { DateTime, listOf, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { AgentId, DeliveryId, WebhookId, wireId } from './kit/ids.ts'
import { pagination } from './kit/query.ts'
import { OrganizationEventType } from './organization-events.ts'

const MAX_URL_BYTES = 2 * 1024
const MAX_DESCRIPTION_BYTES = 1024

/** Sizes of a secret's random bytes, by the specification of Standard Webhooks. */
export const SECRET_BYTES = { least: 24, most: 64 } as const
export const SECRET_PREFIX = 'whsec_'

/** Type of the event that a test sends. */
export const TEST_EVENT = 'webhook.test'

const WebhookEventType = OrganizationEventType.exclude(['turn.cancelled']).meta({ id: 'WebhookEventType' })

const secret = z
  .string()
  .refine(isSecret, {
    error: `must be ${SECRET_PREFIX} followed by ${SECRET_BYTES.least} to ${SECRET_BYTES.most} random bytes in base64`,
  })
  .meta({ description: 'A secret of your own, in the form of Standard Webhooks. Without it the service makes one.' })

/** Whether a text is a secret in the form of Standard Webhooks, in which its bytes can be written in only one way. */
function isSecret(text: string): boolean {
  if (!text.startsWith(SECRET_PREFIX)) return false
  const base64 = text.slice(SECRET_PREFIX.length)
  // The longest one has 88 characters.
  if (base64.length > 2 * SECRET_BYTES.most) return false
  const bytes = Buffer.from(base64, 'base64')
  return bytes.length >= SECRET_BYTES.least && bytes.length <= SECRET_BYTES.most && bytes.toString('base64') === base64
}

export const Webhook = z
  .object({
    id: wireId('webhook'),
    url: z.string(),
    events: z.array(WebhookEventType),
    agent_id: wireId('agent').nullish(),
    description: z.string().nullish(),
    enabled: z.boolean(),
    disabled_reason: z.string().nullish().meta({ description: 'Why the service disabled it.' }),
    former_secret_until: DateTime.nullish().meta({ description: 'Time until which the former secret signs as well.' }),
    created_at: DateTime,
    updated_at: DateTime,
  })
  .meta({ id: 'Webhook' })
export type Webhook = z.infer<typeof Webhook>

export const WebhookWithSecret = Webhook.extend({
  secret: z.string().meta({ description: 'Signs the requests. Shown only in this answer.' }),
}).meta({ id: 'WebhookWithSecret' })
export type WebhookWithSecret = z.infer<typeof WebhookWithSecret>

export const WebhookDeliveryStatus = z.enum(['pending', 'delivered', 'failed']).meta({ id: 'WebhookDeliveryStatus' })
export type WebhookDeliveryStatus = z.infer<typeof WebhookDeliveryStatus>

export const WebhookDelivery = z
  .object({
    id: wireId('delivery').meta({ description: 'The webhook-id of its requests.' }),
    webhook_id: wireId('webhook'),
    type: z.enum([...WebhookEventType.options, TEST_EVENT]),
    agent_id: wireId('agent').nullish(),
    session_id: wireId('session').nullish(),
    turn_id: wireId('turn').nullish(),
    status: WebhookDeliveryStatus,
    attempts: z.int().min(0),
    http_status: z.int().nullish().meta({ description: 'Status of the answer to the last attempt, if it had one.' }),
    error: z.string().nullish().meta({ description: 'Why the last attempt failed.' }),
    created_at: DateTime,
    last_attempt_at: DateTime.nullish(),
    next_attempt_at: DateTime.nullish().meta({
      description: 'When a pending delivery is attempted; later if an earlier one of its session is pending.',
    }),
    finished_at: DateTime.nullish(),
  })
  .meta({ id: 'WebhookDelivery' })
export type WebhookDelivery = z.infer<typeof WebhookDelivery>

const url = textUpTo(MAX_URL_BYTES).meta({ description: 'Public http or https address that gets the events by POST.' })
const description = textUpTo(MAX_DESCRIPTION_BYTES)
const events = z.array(WebhookEventType).min(1, { error: 'must have at least one type of event' }).max(20)

const CreateWebhookRequest = z
  .object({
    url,
    events,
    agent_id: AgentId.nullish().meta({ description: 'Only events about this agent.' }),
    description: description.nullish(),
    secret: secret.nullish(),
  })
  .meta({ id: 'CreateWebhookRequest' })
export type CreateWebhookRequest = z.infer<typeof CreateWebhookRequest>

const UpdateWebhookRequest = z
  .object({
    url: url.nullish(),
    events: events.nullish(),
    agent_id: AgentId.or(z.literal('')).nullish().meta({ description: '"" stands for all agents.' }),
    description: description.nullish(),
    enabled: z.boolean().nullish(),
  })
  .meta({ id: 'UpdateWebhookRequest', description: 'Fields that are null or absent stay unchanged.' })
export type UpdateWebhookRequest = z.infer<typeof UpdateWebhookRequest>

const RotateWebhookSecretRequest = z.object({ secret: secret.nullish() }).meta({ id: 'RotateWebhookSecretRequest' })
export type RotateWebhookSecretRequest = z.infer<typeof RotateWebhookSecretRequest>

const params = z.object({ webhook_id: WebhookId })
const ofDelivery = z.object({ webhook_id: WebhookId, delivery_id: DeliveryId })
export type OfDelivery = z.output<typeof ofDelivery>

export const webhookEndpoints = group(
  { tag: 'webhooks', path: '/v1/webhooks', access: 'admin' },
  {
    list: {
      operationId: 'listWebhooks',
      method: 'GET',
      summary: 'Lists the webhooks, newest first',
      responses: { 200: listOf(Webhook) },
    },
    create: {
      operationId: 'createWebhook',
      method: 'POST',
      summary: 'Creates a webhook',
      description:
        'Each event is sent to its URL as Standard Webhooks says, with the headers webhook-id, webhook-timestamp and webhook-signature, at least once and in the order of its session.',
      body: CreateWebhookRequest,
      creates: true,
      responses: { 201: WebhookWithSecret },
    },
    get: {
      operationId: 'getWebhook',
      method: 'GET',
      at: '/{webhook_id}',
      summary: 'Gets a webhook',
      params,
      responses: { 200: Webhook },
    },
    patch: {
      operationId: 'updateWebhook',
      method: 'PATCH',
      at: '/{webhook_id}',
      summary: 'Changes a webhook; a new URL gets what is pending at once',
      description:
        'A disabled webhook gets no events, and its pending deliveries fail. They can be delivered again once it is enabled.',
      params,
      body: UpdateWebhookRequest,
      responses: { 200: Webhook },
    },
    delete: {
      operationId: 'deleteWebhook',
      method: 'DELETE',
      at: '/{webhook_id}',
      summary: 'Deletes a webhook and its deliveries',
      params,
      responses: { 204: null },
    },
    rotate: {
      operationId: 'rotateWebhookSecret',
      method: 'POST',
      at: '/{webhook_id}/rotate-secret',
      summary: 'Replaces the secret',
      description: 'The former secret signs as well for 24 hours: the header then has two signatures.',
      params,
      body: RotateWebhookSecretRequest,
      bodyOptional: true,
      creates: true,
      responses: { 200: WebhookWithSecret },
    },
    test: {
      operationId: 'testWebhook',
      method: 'POST',
      at: '/{webhook_id}/test',
      summary: `Sends an event of the type ${TEST_EVENT}, once`,
      params,
      creates: true,
      responses: { 201: WebhookDelivery },
    },
    deliveries: {
      operationId: 'listWebhookDeliveries',
      method: 'GET',
      at: '/{webhook_id}/deliveries',
      summary: 'Lists the deliveries, newest first',
      params,
      query: z.object({ status: WebhookDeliveryStatus.optional(), ...pagination }),
      responses: { 200: listOf(WebhookDelivery) },
    },
    redeliver: {
      operationId: 'redeliverWebhook',
      method: 'POST',
      at: '/{webhook_id}/deliveries/{delivery_id}/redeliver',
      summary: 'Delivers again: with the same webhook-id and body, for another three days',
      params: ofDelivery,
      responses: { 200: WebhookDelivery },
      errors: [409],
    },
  },
)
