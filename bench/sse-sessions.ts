import type { Deps } from '../domain/deps.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid } from '../domain/ids.ts'

/** A session with a turn that runs, without the events that led to it; ids are uuids. */
export type BenchSession = { id: string; turnId: string; execId: string }

const HARNESS = '01933b5a-0000-7000-8000-000000000601'

export async function insertSessions(deps: Deps, count: number): Promise<BenchSession[]> {
  const sessions = Array.from({ length: count }, () => ({ id: newUuid(), turnId: newUuid(), execId: newUuid() }))
  const organizationId = DEFAULT_ORGANIZATION_UUID
  await deps.db.session.createMany({
    data: sessions.map(({ id }) => ({ id, organizationId, harnessId: HARNESS, status: 'active' as const })),
  })
  await deps.db.turn.createMany({
    data: sessions.map(({ id, turnId }) => ({
      id: turnId,
      organizationId,
      sessionId: id,
      inputSequence: 0,
      status: 'active' as const,
      startedAt: new Date(),
    })),
  })
  return sessions
}
