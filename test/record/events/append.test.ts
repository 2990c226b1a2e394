import { eventTypes } from '../../../contract/events.ts'
import type { Deps } from '../../../domain/deps.ts'
import { announces } from '../../../domain/events/log/announcements.ts'
import { appendEvents, type NewEvent, type Writer } from '../../../domain/events/log/append.ts'
import { withLockedSession } from '../../../domain/events/log/transaction.ts'
import { DEFAULT_ORGANIZATION_UUID, newUuid, toId } from '../../../domain/kit/ids.ts'
import { unavailability } from '../../../platform/unavailable.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import { call, createSession, type Json, listEvents, textMessage } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { typesOf } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'
import { forgetActivation } from '../../support/turns.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  deps = service.platform.deps
})
afterAll(() => service.stop())

/** Creates a session with `count` messages whose turns only the test writes to, and that none has activated yet. */
async function createTurns(count = 1): Promise<{ id: string; writers: Writer[]; writer: Writer }> {
  const id = await createSession(service.url)
  const writers: Writer[] = []
  for (let turn = 0; turn < count; turn++) {
    const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage(`message ${turn}`))
    writers.push({ sessionId: toUuid(id), turnId: toUuid(body.id) })
    if (turn === 0) await forgetActivation(deps, toUuid(id))
  }
  return { id, writers, writer: writers[0] as Writer }
}

const STEP = 'reason:1'
const attempt = (writer: Writer, fence: number): Writer => ({ ...writer, attempt: { step: STEP, fence } })
const activated = ({ turnId }: Writer): NewEvent => ({
  type: 'session.activated',
  data: { turn_id: toId('turn', turnId), input_message_id: toId('message', turnId) },
})
const delta = ({ turnId }: Writer, text: string, execId: string): NewEvent => ({
  type: 'output.message.delta',
  step: STEP,
  execId,
  data: { turn_id: toId('turn', turnId), delta: text },
})
const ended = ({ turnId }: Writer): NewEvent[] => [
  { type: 'turn.completed', data: { turn_id: toId('turn', turnId), iterations: 1 } },
  { type: 'session.idled', data: { turn_id: toId('turn', turnId) } },
]

const getSession = async (id: string): Promise<Json> => (await call(service.url, 'GET', `/v1/sessions/${id}`)).body

describe('appendEvents', () => {
  it('records nothing twice', async () => {
    const { id, writer } = await createTurns()
    const first = await appendEvents(deps, writer, [activated(writer)])
    const again = await appendEvents(deps, writer, [activated(writer)])
    expect(first).toMatchObject({ outcome: 'appended', events: [{ type: 'session.activated', sequence: 2 }] })
    expect(again).toMatchObject({ outcome: 'appended', events: [] })
    expect(typesOf(await listEvents(service.url, id))).toEqual(['input.message', 'session.activated'])
  })

  it('records what is new of a repeated batch, without a gap', async () => {
    const { id, writer } = await createTurns()
    await appendEvents(deps, writer, [activated(writer)])
    await appendEvents(deps, writer, [activated(writer), ...ended(writer)])
    const events = await listEvents(service.url, id)
    expect(typesOf(events)).toEqual(['input.message', 'session.activated', 'turn.completed', 'session.idled'])
    expect(events.map((event) => event.sequence)).toEqual([1, 2, 3, 4])
  })

  it('records all of a batch or nothing', async () => {
    const { id, writer } = await createTurns()
    const broken = delta(writer, 'text', 'no-uuid')
    await expect(appendEvents(deps, writer, [activated(writer), broken])).rejects.toThrow()
    expect(typesOf(await listEvents(service.url, id))).toEqual(['input.message'])
    expect((await getSession(id)).status).toBe('started')
    expect(await appendEvents(deps, writer, [activated(writer)])).toMatchObject({ events: [{ sequence: 2 }] })
  })

  it('refuses an older attempt once a newer one has begun, and only of the same step', async () => {
    const { id, writer } = await createTurns()
    const [older, newer] = [newUuid(), newUuid()]
    const write = (fence: number, text: string, execId: string) =>
      appendEvents(deps, attempt(writer, fence), [delta(writer, text, execId)])
    expect(await write(1, 'old', older)).toMatchObject({ outcome: 'appended' })
    expect(await write(2, 'new', newer)).toMatchObject({ outcome: 'appended' })
    expect(await write(1, 'old again', older)).toEqual({ outcome: 'fenced' })
    expect(await write(2, 'new again', newer)).toMatchObject({ outcome: 'appended' })
    const other: Writer = { ...writer, attempt: { step: 'reason:2', fence: 1 } }
    expect(await appendEvents(deps, other, [activated(writer)])).toMatchObject({ outcome: 'appended' })
    const deltas = (await listEvents(service.url, id)).filter((event) => event.type === 'output.message.delta')
    expect(deltas.map((event) => event.data.delta)).toEqual(['old', 'new', 'new again'])
    expect(deltas.map((event) => event.data.accumulated)).toEqual(['old', 'new', 'newnew again'])
  })

  it('records nothing of a turn after its end', async () => {
    const { id, writer } = await createTurns()
    await appendEvents(deps, writer, ended(writer))
    const late = await appendEvents(deps, attempt(writer, 9), [activated(writer), delta(writer, 'late', newUuid())])
    expect(late).toEqual({ outcome: 'turn_ended', nextTurnId: null })
    expect(typesOf(await listEvents(service.url, id))).toEqual(['input.message', 'turn.completed', 'session.idled'])
    expect(await getSession(id)).toMatchObject({ status: 'idle' })
  })

  it('returns the next turn at the end of a turn, and keeps the session active until the queue is empty', async () => {
    const { id, writers } = await createTurns(3)
    for (const [index, writer] of writers.entries()) {
      await appendEvents(deps, writer, [activated(writer)])
      const appended = await appendEvents(deps, writer, ended(writer))
      const isLast = index === writers.length - 1
      expect(appended).toMatchObject({ outcome: 'appended', nextTurnId: writers[index + 1]?.turnId ?? null })
      expect(await getSession(id)).toMatchObject({ status: isLast ? 'idle' : 'active' })
    }
    const idled = typesOf(await listEvents(service.url, id)).filter((type) => type === 'session.idled')
    expect(idled).toHaveLength(1)
  })

  it('gives concurrent appends sequences without a gap, in the order of their times', async () => {
    const { id, writer } = await createTurns()
    const execId = newUuid()
    const appends = Array.from({ length: 50 }, (_, index) =>
      appendEvents(deps, attempt(writer, 1), [delta(writer, `${index}.`, execId), delta(writer, `${index};`, execId)]),
    )
    const sequences = (await Promise.all(appends)).flatMap((appended) =>
      appended.outcome === 'appended' ? appended.events.map((event) => event.sequence) : [],
    )
    expect([...sequences].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, index) => index + 2))
    const events = await listEvents(service.url, id)
    expect(events.map((event) => event.sequence)).toEqual(Array.from({ length: 101 }, (_, index) => index + 1))
    const times = events.map((event) => event.ts)
    expect(times).toEqual([...times].sort())
  })

  it('says so when the session is gone', async () => {
    const { writer } = await createTurns()
    const nobody = { ...writer, sessionId: newUuid() }
    expect(await appendEvents(deps, nobody, [activated(writer)])).toEqual({ outcome: 'session_gone' })
    const foreign = { ...writer, sessionId: toUuid(await createSession(service.url)) }
    expect(await appendEvents(deps, foreign, [activated(writer)])).toEqual({ outcome: 'session_gone' })
  })

  it('returns the events as a later reader finds them', async () => {
    const { id, writer } = await createTurns()
    const appended = await appendEvents(deps, writer, [activated(writer), ...ended(writer)])
    if (appended.outcome !== 'appended') throw new Error(appended.outcome)
    expect(JSON.parse(JSON.stringify(appended.events))).toEqual((await listEvents(service.url, id)).slice(1))
  })
})

describe('record_events', () => {
  /** Records an event of a type that no release has had, with the given announcement. */
  const recordInvented = ({ sessionId, turnId }: Writer, name: string, announced: object) => {
    const events = [{ type: `invented.${name}`, step: STEP, data: {}, announces: announced }]
    return deps.db.$queryRaw`
      SELECT record_events(${sessionId}::uuid, ${turnId}::uuid, NULL, NULL, ${JSON.stringify(events)}::jsonb)`
  }
  const getTurn = async (id: string, writer: Writer): Promise<Json> =>
    (await call(service.url, 'GET', `/v1/sessions/${id}/turns/${toId('turn', writer.turnId)}`)).body

  it('takes the meaning of an event from its announcement, so a new event type needs no migration', async () => {
    const { id, writer } = await createTurns()
    const usage = { input_tokens: 4, output_tokens: 3, cache_read_tokens: 2, cache_creation_tokens: 1 }
    await recordInvented(writer, 'begin', {
      session_status: 'active',
      begins_session: true,
      turn_status: 'active',
      begins_turn: true,
      iterations: 2,
      usage,
      output_preview: 'Once',
    })
    expect(await getSession(id)).toMatchObject({ status: 'active', usage, output_preview: 'Once', finished_at: null })
    expect(await getTurn(id, writer)).toMatchObject({ status: 'active', iterations: 2, usage, finished_at: null })
    expect((await getSession(id)).started_at).toBe((await getTurn(id, writer)).started_at)

    await recordInvented(writer, 'begin-again', { begins_session: true, output_preview: 'never' })
    await recordInvented(writer, 'note', {})
    await recordInvented(writer, 'note', { output_preview: 'never' })
    await recordInvented(writer, 'wait', { session_status: 'waitingfortoolresults', turn_status: 'waiting' })
    expect(await getSession(id)).toMatchObject({ status: 'waitingfortoolresults', output_preview: 'Once' })
    await recordInvented(writer, 'answer', { answers_call: true })
    expect(await getTurn(id, writer)).toMatchObject({ status: 'active', iterations: 2, usage })
    await recordInvented(writer, 'end', { turn_status: 'failed', error: 'It broke.', error_code: 'llm_error' })
    expect(await getTurn(id, writer)).toMatchObject({ status: 'failed', error: 'It broke.', error_code: 'llm_error' })
    const [stored] = await deps.db.$queryRaw<{ types: string[]; sequences: number[] }[]>`
      SELECT array_agg(type ORDER BY sequence) AS types, array_agg(sequence ORDER BY sequence) AS sequences
      FROM events WHERE session_id = ${writer.sessionId}::uuid AND type LIKE 'invented.%'`
    const names = ['begin', 'note', 'wait', 'answer', 'end']
    expect(stored).toEqual({ types: names.map((name) => `invented.${name}`), sequences: [2, 3, 4, 5, 6] })
  })

  it('makes a notice to the workflow due for the last answer of a waiting turn, and not before', async () => {
    const { writer } = await createTurns()
    const noticeDueAt = async () =>
      (await deps.db.turn.findUniqueOrThrow({ where: { id: writer.turnId } })).noticeDueAt?.getTime()
    await recordInvented(writer, 'queued', { notifies_workflow: true })
    expect(await noticeDueAt()).toBeUndefined()
    await recordInvented(writer, 'begin', { turn_status: 'active' })
    await recordInvented(writer, 'answer', { answers_call: true })
    expect(await noticeDueAt()).toBeUndefined()
    await recordInvented(writer, 'wait', { turn_status: 'waiting' })
    await recordInvented(writer, 'last-answer', { answers_call: true })
    expect(await noticeDueAt()).toBeGreaterThan(0)
  })

  it('names exactly the event types that may repeat, as the unique index does', async () => {
    const [found] = await deps.db.$queryRaw<{ source: string; index: string }[]>`
      SELECT (SELECT prosrc FROM pg_proc WHERE proname = 'record_events') AS source,
        pg_get_indexdef('events_once'::regclass) AS index`
    const repeatable = eventTypes.filter((type) => announces({ type, data: {} }).mayRepeat)
    expect(repeatable).toHaveLength(3)
    for (const text of [found?.source, found?.index]) {
      expect(eventTypes.filter((type) => text?.includes(`'${type}'`))).toEqual(repeatable)
    }
  })
})

describe('a transaction that has locked a session', () => {
  it('leaves it to others when its process stands still', async () => {
    const { writer } = await createTurns()
    const where = { organizationId: DEFAULT_ORGANIZATION_UUID, sessionId: writer.sessionId }
    const [began, taken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const frozen = withLockedSession(deps, where, async ({ db }) => {
      began.resolve()
      await taken.promise
      await db.$queryRaw`SELECT 1`
    })
    const outcome = frozen.catch((error: unknown) => unavailability(error))
    await began.promise
    const lock = async (db: Prisma.TransactionClient) => {
      await db.$queryRaw`SELECT set_config('lock_timeout', '10s', true)`
      await db.$queryRaw`SELECT 1 FROM sessions WHERE id = ${writer.sessionId}::uuid FOR NO KEY UPDATE`
    }
    await deps.db.$transaction(lock, { timeout: 15_000 })
    taken.resolve()
    expect(await outcome).toBe('away')
  })
})
