import type { SessionId } from '../../contract/kit/ids.ts'
import type { Session } from '../../contract/sessions.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { noSession } from '../kit/errors.ts'
import { findMissing } from '../tools/registry/missing.ts'
import { readCapabilities } from '../tools/registry/read.ts'
import { countActiveSchedules } from './active-schedules.ts'
import { featuringRefs, namesOf, presentSession, relations, type SessionRow } from './present.ts'

/** Returns a session. Throws `not_found`. */
export async function getSession(deps: Deps, actor: Actor, id: SessionId): Promise<Session> {
  const session = await findSession(deps, actor, id)
  if (session === undefined) throw noSession()
  return session
}

/** Returns a session with its draft. Undefined for a session of another organization. */
export async function findSession(deps: Deps, actor: Actor, id: string): Promise<Session | undefined> {
  const where = { id, organizationId: actor.organizationId }
  const [row, schedules] = await Promise.all([
    deps.db.session.findFirst({ where, include: relations(actor) }),
    countActiveSchedules(deps, [id]),
  ])
  if (row === null) return undefined
  return (await presentAll(deps, actor, [{ ...row, hasDraft: row.draftPrompt !== null }], schedules))[0]
}

/** Reads the sessions with these uuids, in their order, without their drafts. Skips sessions of other organizations. */
export async function readSessions(deps: Deps, actor: Actor, ids: string[]): Promise<Session[]> {
  const where = { id: { in: ids }, organizationId: actor.organizationId }
  const [rows, drafts, schedules] = await Promise.all([
    deps.db.session.findMany({ where, include: relations(actor), omit: { draftPrompt: true } }),
    deps.db.session.findMany({ where: { ...where, draftPrompt: { not: null } }, select: { id: true } }),
    countActiveSchedules(deps, ids),
  ])
  const drafted = new Set(drafts.map(({ id }) => id))
  const byId = new Map(rows.map((row) => [row.id, { ...row, hasDraft: drafted.has(row.id) }]))
  return presentAll(
    deps,
    actor,
    ids.flatMap((id) => byId.get(id) ?? []),
    schedules,
  )
}

async function presentAll(
  deps: Deps,
  { organizationId }: Actor,
  rows: SessionRow[],
  schedules: Map<string, number>,
): Promise<Session[]> {
  const [registry, missing] = await Promise.all([
    readCapabilities(deps, organizationId, featuringRefs(rows)),
    findMissing(deps, organizationId, rows.map(namesOf)),
  ])
  return rows.map((row) => presentSession(registry, missing, row, schedules.get(row.id) ?? 0))
}
