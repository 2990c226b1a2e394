import { warnRarely } from '../../../lib/warn-rarely.ts'
import { Prisma } from '../../../prisma/generated/client.ts'
import { toId } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { inShareSql } from './process-lease.ts'
import type { TurnContext } from './turn-context.ts'
import { beginAdmitted } from './waiting-steps.ts'

type Capped = Pick<TurnContext, 'organizationId' | 'turnId' | 'status' | 'admission' | 'caps' | 'isChild'>

/**
 * Whether the number of turns that run at once is limited for a turn. A child turn runs in its caller's place: callers
 * that waited for each other's places would never end.
 */
const isCapped = ({ admission, caps, isChild }: Capped): boolean =>
  admission !== null || (caps.maxRunningTurns !== undefined && !isChild)

/**
 * Takes a place among the turns that run at once, unless the turn has one or needs none. False when the turn has to wait
 * for it. The place is free again when the turn ends or waits for its client.
 */
export async function takePlace(deps: Deps, turn: Capped & Pick<TurnContext, 'attempts'>): Promise<boolean> {
  if (!isCapped(turn) || turn.admission === 'granted') return true
  // A call that has begun goes on, although a cap has been set since. A turn that is over finds that out when it writes.
  if (turn.attempts.isClaimed || (turn.status !== 'queued' && turn.status !== 'active')) return true
  return (await admit(deps, turn.organizationId, turn.turnId)).includes(turn.turnId)
}

/** Lets turns run for which a turn has made place by ending or by waiting for its client. */
export function passPlaceOn(deps: Deps, turn: Capped): void {
  if (isCapped(turn)) admitSoon(deps, turn.organizationId)
}

/** Lets turns of an organization run for which there are places now. A failure is made good by the sweep. */
export function admitSoon(deps: Deps, organizationId: string): void {
  admit(deps, organizationId).catch((error: Error) => {
    const logFields = { organization: toId('org', organizationId), err: error.message }
    warnRarely(deps.log, logFields, 'waiting turns not admitted; the sweeper will admit them')
  })
}

/** Admits waiting turns of all organizations in this process's share: a cap was raised, or the process died that was to. */
export async function admitWaitingTurns(deps: Deps): Promise<number> {
  const organizations = await deps.db.$queryRaw<{ id: string }[]>`
    SELECT DISTINCT organization_id AS id FROM turns
    WHERE admission = 'waits' AND status IN ('queued', 'active') AND ${inShareSql(deps, Prisma.sql`organization_id`)}`
  let admitted = 0
  for (const { id } of organizations) admitted += (await admit(deps, id)).length
  return admitted
}

/** Admits turns of an organization, and begins their steps, except the `asking` turn's. Returns their ids. */
async function admit(deps: Deps, organizationId: string, asking: string | null = null): Promise<string[]> {
  const cap = deps.limits.maxRunningTurns ?? null
  const rows = await deps.db.$queryRaw<{ id: string }[]>`
    SELECT turn_id::text AS id FROM admit_turns(${organizationId}::uuid, ${cap}::integer, ${asking}::uuid)`
  const ids = rows.map(({ id }) => id)
  await beginAdmitted(
    deps,
    ids.filter((id) => id !== asking),
  )
  return ids
}
