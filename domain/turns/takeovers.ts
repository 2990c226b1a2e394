import type { Takeover } from '../../contract/turns.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import { span } from '../events/log/present.ts'
import { parseStep } from '../events/log/steps.ts'

/** A takeover as the SQL function note_takeover stores it. */
type StoredTakeover = {
  step: string
  reason: Takeover['reason']
  begun_at: string | null
  lost_at: string
  at: string
  from: string | null
  to: string | null
}

/** Presents a turn's takeovers. Returns nothing for a turn without any. */
export function presentTakeovers(turnId: string, stored: Prisma.JsonValue): { takeovers?: Takeover[] } {
  // Only note_takeover writes the column.
  const takeovers = stored as StoredTakeover[] | null
  return takeovers === null ? {} : { takeovers: takeovers.flatMap((takeover) => present(turnId, takeover) ?? []) }
}

function present(turnId: string, { step, reason, begun_at, lost_at, at, from, to }: StoredTakeover) {
  const parsed = parseStep(step)
  if (parsed === undefined) return undefined
  return {
    iteration: parsed.iteration,
    tool_call_id: 'callId' in parsed ? parsed.callId : null,
    span_id: span(turnId, step),
    reason,
    begun_at: begun_at && toIso(begun_at),
    lost_at: toIso(lost_at),
    taken_over_at: toIso(at),
    from_process: from,
    to_process: to,
  }
}

const toIso = (time: string): string => new Date(time).toISOString()
