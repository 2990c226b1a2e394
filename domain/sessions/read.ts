import type { SessionId } from '../../contract/kit/ids.ts'
import type { Session } from '../../contract/sessions.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { noSession } from '../kit/errors.ts'
import { findMissing } from '../tools/registry/missing.ts'
import { readCapabilities } from '../tools/registry/read.ts'
import { countActiveSchedules } from './active-schedules.ts'
import { featuringRefs, namesOf, presentSession, relations } from './present.ts'

/** Returns a session. Throws `not_found`. */
export async function getSession(deps: Deps, actor: Actor, id: SessionId): Promise<Session> {
  const [session] = await readSessions(deps, actor, [id])
  if (session === undefined) throw noSession()
  return session
}

/** Reads the sessions with these uuids, in their order. Skips sessions of other organizations. */
export async function readSessions(deps: Deps, actor: Actor, ids: string[]): Promise<Session[]> {
  const { organizationId } = actor
  const [rows, schedules] = await Promise.all([
    deps.db.session.findMany({ where: { id: { in: ids }, organizationId }, include: relations(actor) }),
    countActiveSchedules(deps, ids),
  ])
  const [registry, missing] = await Promise.all([
    readCapabilities(deps, organizationId, featuringRefs(rows)),
    findMissing(deps, organizationId, rows.map(namesOf)),
  ])
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => {
    const row = byId.get(id)
    return row === undefined ? [] : [presentSession(registry, missing, row, schedules.get(id) ?? 0)]
  })
}
