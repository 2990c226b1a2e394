import { createHmac, randomBytes } from 'node:crypto'
import { SECRET_PREFIX } from '../../../contract/webhooks.ts'
import type { Webhook as WebhookRow } from '../../../prisma/generated/client.ts'
import { type EncryptedColumn, placeOf } from '../../kit/secrets.ts'
import type { Deps } from './deps.ts'

/** Column of the secrets that sign requests. */
export const WEBHOOK_SECRETS: EncryptedColumn = { table: 'webhooks', keys: ['id'], column: 'secrets' }

/** Secrets of a webhook. The former one signs too until `formerSecretUntil`. */
export type SigningSecrets = { current: string; former?: string | undefined }

const MADE_BYTES = 32

/** Returns a new secret in the form of Standard Webhooks. */
export const newSecret = (): string => SECRET_PREFIX + randomBytes(MADE_BYTES).toString('base64')

export const encryptSecrets = ({ secrets }: Deps, webhookId: string, signing: SigningSecrets) =>
  secrets.encrypt(JSON.stringify(signing), placeOf(WEBHOOK_SECRETS, [webhookId]))

/** Decrypts the secrets of a webhook that is not deleted. Throws `UnreadableSecret`. */
export const readSecrets = (
  { secrets }: Deps,
  { id, secrets: stored }: Pick<WebhookRow, 'id' | 'secrets'>,
): SigningSecrets => JSON.parse(secrets.decrypt(stored ?? new Uint8Array(), placeOf(WEBHOOK_SECRETS, [id])))

type Signed = { id: string; timestamp: number; body: string }

/** Returns the header `webhook-signature`: a signature by each secret, the current one first. */
export const signatureOf = ({ current, former }: SigningSecrets, { id, timestamp, body }: Signed): string =>
  [current, ...(former === undefined ? [] : [former])]
    .map((secret) => {
      const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
    })
    .join(' ')
