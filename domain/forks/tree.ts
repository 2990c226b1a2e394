import { MAX_TREE, type SessionTree } from '../../contract/forks.ts'
import type { SessionId } from '../../contract/kit/ids.ts'
import type { Deps } from '../deps.ts'
import type { Actor } from '../kit/actor.ts'
import { noSession } from '../kit/errors.ts'
import { toId } from '../kit/ids.ts'
import { presentOrigin } from '../sessions/present.ts'

/** Lists the sessions of a session's tree that have not been deleted, oldest first. Throws `not_found`. */
export async function readTree(deps: Deps, actor: Actor, id: SessionId): Promise<SessionTree> {
  const { organizationId } = actor
  const session = await deps.db.session.findFirst({ where: { id, organizationId }, select: { treeId: true } })
  if (session === null) throw noSession()
  const treeId = session.treeId ?? id
  const rows = await deps.db.session.findMany({
    where: { organizationId, OR: [{ id: treeId }, { treeId }] },
    select: { id: true, title: true, status: true, forkedFromId: true, fork: true, createdAt: true },
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    take: MAX_TREE,
  })
  const data = rows.map((row) => ({
    id: toId('session', row.id),
    title: row.title,
    status: row.status,
    forked_from: presentOrigin(row),
    created_at: row.createdAt.toISOString(),
  }))
  return { data }
}
