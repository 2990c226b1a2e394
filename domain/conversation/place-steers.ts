import type { Message } from '../../contract/messages.ts'
import type { StoredEvent } from '../events/log/present.ts'
import { isSteerStep } from '../events/log/steps.ts'
import { toId } from '../kit/ids.ts'

type Row = Pick<StoredEvent, 'type' | 'step' | 'sequence' | 'turnId' | 'data'>

/** Reports whether a row is a message that joined a running turn. */
export const isSteer = ({ type, step }: Pick<Row, 'type' | 'step'>): boolean =>
  type === 'input.message' && isSteerStep(step)

/**
 * Returns rows in the order in which models read them. A message that joined a turn may be recorded in the middle of a
 * model call or of its tool calls. It follows all that came before the first answer that has read it; unread, it is last.
 */
export function placeSteers<Placed extends Row>(rows: Placed[]): Placed[] {
  if (!rows.some(isSteer)) return rows
  const placed: Placed[] = []
  let waiting: Placed[] = []
  const placeUpTo = (sequence: number) => {
    placed.push(...waiting.filter((steer) => steer.sequence <= sequence))
    waiting = waiting.filter((steer) => steer.sequence > sequence)
  }
  for (const row of rows) {
    if (row.turnId !== waiting[0]?.turnId) placeUpTo(Number.POSITIVE_INFINITY)
    if (isSteer(row)) {
      waiting.push(row)
      continue
    }
    if (row.type === 'output.message.completed') placeUpTo(Number(row.data.steered_through ?? 0))
    placed.push(row)
  }
  placeUpTo(Number.POSITIVE_INFINITY)
  return placed
}

/** Returns the sequence of the latest message of a conversation that joined the turn, or 0. */
export const steeredThrough = (messages: Message[], turnId: string): number =>
  Math.max(
    0,
    ...messages.map(({ role, turn_id, sequence }) => {
      return role === 'user' && turn_id === toId('turn', turnId) ? sequence : 0
    }),
  )
