import type { WireEvent } from '../../contract/events.ts'
import { steerStep, steerSteps } from '../events/log/steps.ts'
import type { LockedSession } from '../events/log/transaction.ts'
import { DomainError } from '../kit/errors.ts'
import type { NewMessage } from './insert.ts'

/** Maximum number of messages that join one turn. */
export const MAX_STEERS = 100

const TOO_MANY = `${MAX_STEERS} messages have joined the running turn, which is the limit; post this one with on_busy "enqueue"`

/**
 * Adds a message to an unfinished turn, whose next model call reads it. The turn does not end before an answer has read
 * it: `record_events` refuses such an end. The turn's model and budget hold for it, so the message has no controls. Throws
 * `too_many` when many messages have joined the turn.
 */
export async function steerTurn(
  { db, append }: Pick<LockedSession, 'db' | 'append'>,
  turnId: string,
  { turnId: messageId, data }: NewMessage,
): Promise<WireEvent[]> {
  const count = await db.event.count({ where: { turnId, type: 'input.message', step: { startsWith: steerSteps } } })
  if (count >= MAX_STEERS) throw new DomainError('too_many', TOO_MANY, { code: 'queue_full', retryAfterSeconds: 10 })
  const message = { ...data.message, controls: undefined }
  const appended = await append(turnId, [{ type: 'input.message', step: steerStep(messageId), data: { message } }])
  if (appended.outcome !== 'appended') throw new Error(`the turn took no message: ${appended.outcome}`)
  return appended.events
}
