import pg from 'pg'
import type { Deps } from '../../../domain/deps.ts'
import { type Appended, appendEvents, type NewEvent, type Writer } from '../../../domain/events/log/append.ts'
import { createGroupCommit } from '../../../domain/events/log/group-commit.ts'
import { recordStatements, type StoredAppend } from '../../../domain/events/log/record.ts'
import { withLockedSession } from '../../../domain/events/log/transaction.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid, toId } from '../../../domain/kit/ids.ts'
import { call, createSession, textMessage } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { startService, type TestService } from '../../support/service.ts'

const SESSIONS = 40
const DELTAS = 6
const STEP = 'reason:1'

let service: TestService
let deps: Deps
/** Sessions of each statement that recorded a group. */
let groups: string[][]
beforeAll(async () => {
  service = await startService({ worker: false })
})
afterAll(() => service.stop())
beforeEach(() => {
  const { platform } = service
  const statements = recordStatements(platform.deps.db, platform.deps.unavailability)
  groups = []
  const together = (appends: StoredAppend[]) => {
    groups.push(appends.map(({ sessionId }) => sessionId))
    return statements.together(appends)
  }
  const events = { ...platform.deps.events, groups: createGroupCommit({ ...statements, together }) }
  deps = { ...platform.deps, events }
})

type Turn = { id: string; writer: Writer; execId: string }

async function createTurn(): Promise<Turn> {
  const id = await createSession(service.url)
  const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  const writer = { sessionId: toUuid(id), turnId: toUuid(body.id), attempt: { step: STEP, fence: 1 } }
  return { id, writer, execId: newUuid() }
}

const createTurns = (count: number): Promise<Turn[]> => Promise.all(Array.from({ length: count }, createTurn))

const own = ({ execId }: Turn, type: NewEvent['type'], data: NewEvent['data']): NewEvent => ({
  type,
  step: STEP,
  execId,
  data,
})
const claim = (turn: Turn): NewEvent[] => [
  { type: 'turn.started', data: { turn_id: toId('turn', turn.writer.turnId) } },
  own(turn, 'reason.started', {}),
  own(turn, 'output.message.started', {}),
]
const delta = (turn: Turn, text: string): NewEvent => own(turn, 'output.message.delta', { delta: text })
const ended = ({ writer }: Turn): NewEvent[] => [
  { type: 'turn.completed', data: { turn_id: toId('turn', writer.turnId), iterations: 1 } },
  { type: 'session.idled', data: { turn_id: toId('turn', writer.turnId) } },
]

/** Appends what a turn does, up to the first refusal, and `between` after half of it. Returns all results. */
async function runTurn(turn: Turn, between = async () => {}): Promise<Appended[]> {
  const deltas = Array.from({ length: DELTAS }, (_, index) => [delta(turn, `${index}.`)])
  const results: Appended[] = []
  for (const [index, events] of [claim(turn), ...deltas, ended(turn)].entries()) {
    if (index === 1 + DELTAS / 2) await between()
    const appended = await appendEvents(deps, turn.writer, events)
    results.push(appended)
    if (appended.outcome !== 'appended') break
  }
  return results
}

const sequencesOf = (results: Appended[]): number[] =>
  results.flatMap((one) => (one.outcome === 'appended' ? one.events.map(({ sequence }) => sequence) : []))
const outcomesOf = (results: Appended[]): string[] => results.map(({ outcome }) => outcome)

const WHOLE = [
  ...['input.message', 'session.started', 'session.activated', 'turn.started', 'reason.started'],
  ...[
    'output.message.started',
    ...Array<string>(DELTAS).fill('output.message.delta'),
    'turn.completed',
    'session.idled',
  ],
]

/** Returns a session's events as they are stored. */
const readEvents = ({ writer }: Turn) =>
  deps.db.event.findMany({ where: { sessionId: writer.sessionId }, orderBy: { sequence: 'asc' } })
const typesOf = (events: { type: string }[]): string[] => events.map(({ type }) => type)

const where = ({ writer }: Turn) => ({ organizationId: DEFAULT_ORGANIZATION_UUID, sessionId: writer.sessionId })

/** Cancels a turn as the API does, under the session's lock. */
const cancel = (turn: Turn) =>
  withLockedSession(deps, where(turn), (session) =>
    session.append(turn.writer.turnId, [{ type: 'turn.cancelled', data: { reason: 'client' } }]),
  )

/** Locks a session on a connection of its own. */
async function lock({ writer }: Turn): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: service.environment.DATABASE_URL })
  await client.connect()
  await client.query('BEGIN')
  await client.query('SELECT 1 FROM sessions WHERE id = $1 FOR NO KEY UPDATE', [writer.sessionId])
  return () => client.end()
}

describe('appends of many sessions at once', () => {
  it('are recorded in groups as they would be by themselves', async () => {
    const turns = await createTurns(SESSIONS)
    const results = await Promise.all(turns.map((turn) => runTurn(turn)))
    expect(groups.some((group) => group.length > 4)).toBe(true)
    for (const [index, turn] of turns.entries()) {
      const events = await readEvents(turn)
      expect(typesOf(events)).toEqual(WHOLE)
      expect(events.map(({ sequence }) => sequence)).toEqual(WHOLE.map((_, place) => place + 1))
      expect(sequencesOf(results[index] ?? [])).toEqual(events.slice(3).map(({ sequence }) => sequence))
      const recorded = (results[index] ?? []).flatMap((one) => (one.outcome === 'appended' ? one.events : []))
      expect(recorded.map(({ ts }) => ts)).toEqual(events.slice(3).map(({ ts }) => ts.toISOString()))
    }
  })

  it('are refused one by one: in cancelled turns, deleted sessions and superseded attempts', async () => {
    const turns = await createTurns(SESSIONS)
    const results = await Promise.all(
      turns.map((turn, index) =>
        runTurn(turn, async () => {
          if (index % 4 === 1) await cancel(turn)
          if (index % 4 === 2) await call(service.url, 'DELETE', `/v1/sessions/${turn.id}`)
          if (index % 4 === 3) {
            const attempt = { step: STEP, fence: 2 }
            expect(await appendEvents(deps, { ...turn.writer, attempt }, [])).toMatchObject({ claims: 2 })
          }
        }),
      ),
    )
    expect(groups.some((group) => group.length > 4)).toBe(true)
    const written = Array<string>(1 + DELTAS / 2).fill('appended')
    const endings = [Array<string>(1 + DELTAS / 2).fill('appended'), ['turn_ended'], ['session_gone'], ['fenced']]
    for (const [index, turn] of turns.entries()) {
      expect(outcomesOf(results[index] ?? [])).toEqual([...written, ...(endings[index % 4] ?? [])])
      if (index % 4 === 2) continue
      const sequences = (await readEvents(turn)).map(({ sequence }) => sequence)
      expect(sequences).toEqual(sequences.map((_, place) => place + 1))
    }
  })

  it('do not wait for a session that someone else has locked', async () => {
    const [locked, ...others] = (await createTurns(SESSIONS)) as [Turn, ...Turn[]]
    const unlock = await lock(locked)
    let isDone = false
    const running = [...others.slice(0, 8), locked, ...others.slice(8)].map((turn) => runTurn(turn))
    const ofLocked = (running[8] as Promise<Appended[]>).finally(() => {
      isDone = true
    })
    await Promise.all([...running.slice(0, 8), ...running.slice(9)])
    expect(groups.some((group) => group.length > 1 && group.includes(locked.writer.sessionId))).toBe(true)
    expect(isDone).toBe(false)
    await unlock()
    const results = await ofLocked
    expect(outcomesOf(results)).toEqual(Array(2 + DELTAS).fill('appended'))
    expect(typesOf(await readEvents(locked))).toEqual(WHOLE)
  })

  it('fail by themselves, and nothing of their group is recorded twice', async () => {
    const turns = await createTurns(SESSIONS)
    const appended = await Promise.allSettled(
      turns.map((turn, index) =>
        appendEvents(deps, turn.writer, [delta(index === 7 ? { ...turn, execId: 'no-uuid' } : turn, 'once')]),
      ),
    )
    const failing = turns[7]?.writer.sessionId as string
    expect(groups.some((group) => group.length > 1 && group.includes(failing))).toBe(true)
    for (const [index, turn] of turns.entries()) {
      expect(appended[index]?.status).toBe(index === 7 ? 'rejected' : 'fulfilled')
      const deltas = (await readEvents(turn)).filter(({ type }) => type === 'output.message.delta')
      expect(deltas).toHaveLength(index === 7 ? 0 : 1)
    }
  })
})
