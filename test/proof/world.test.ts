import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import pg from 'pg'
import { createScriptedSession, type Json, textMessage, waitFor } from '../support/http.ts'
import { eventsOfTurn, expectSoundRecord, textOf, typesOf } from '../support/record.ts'
import { callUntilAnswered } from '../support/storm-client.ts'
import type { Edit } from './edits.ts'
import type { FaultKind, PlannedFault } from './faults.ts'
import { startWorld, type World } from './world.ts'

/** One plant of each kind: a module, an SQL function and a workflow. */
const PLANTS: Edit[] = [
  { file: 'api/routes/health.ts', find: "status: 'ok', version,", replace: "status: 'ok', version: 'planted'," },
  { file: 'prisma/functions/message_text.sql', find: "{}', ' ')", replace: "{}', ' planted ')" },
  {
    file: 'workflows/turn.ts',
    find: "KNOWN_CODES.find((code) => code === type) ?? 'internal_error'",
    replace: "'timeout'",
  },
]

const ANSWER = 'Hello there, all of you.'
const LASTS_MS = 700
const MINUTES_MS = 60_000

let world: World
let urls: string[]
beforeAll(async () => {
  world = await startWorld({ plants: PLANTS })
  // The first address is the victim's.
  urls = world.urls.toReversed()
})
afterAll(() => world?.close())
afterEach(() => world?.heal())

const ask = (method: string, path: string, body?: unknown): Promise<Json> => callUntilAnswered(urls, method, path, body)

/** Plays a turn. Returns its events. */
async function playTurn(id: string): Promise<Json[]> {
  const { id: messageId } = await ask('POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  const turnId = messageId.replace('message_', 'turn_')
  return waitFor(async () => {
    const { data } = await ask('GET', `/v1/sessions/${id}/events`)
    const events = eventsOfTurn(data, turnId)
    if (!typesOf(events).includes('session.idled')) return undefined
    expectSoundRecord(data)
    return events
  }, 'the turn to end')
}

/** Whether the victim is ready now. A frozen one does not answer. */
async function isReady(): Promise<boolean> {
  try {
    const answer = await fetch(`${urls[0]}/health/ready`, { signal: AbortSignal.timeout(LASTS_MS / 2) })
    return (await answer.text()).includes('"ready"')
  } catch {
    return false
  }
}

/** Looks until something shows that the fault is in force, at most until it is over. */
async function untilShown(isShown: () => Promise<boolean>): Promise<boolean> {
  const begun = await waitFor(async () => world.happened()[0], 'the fault')
  for (;;) {
    const shown = await isShown()
    if (shown || begun.until !== undefined) return shown
    await sleep(10)
  }
}

async function isClockAhead(): Promise<boolean> {
  const { id } = await createSession()
  const madeAt = Number.parseInt(id.slice('session_'.length, 'session_'.length + 12), 16)
  return madeAt - Date.now() > 5 * MINUTES_MS
}

async function createSession(): Promise<{ id: string }> {
  return { id: await createScriptedSession(urls[0] ?? '', [{ text: ANSWER, tokens_per_second: 15 }]) }
}

async function isFlushed(): Promise<boolean> {
  return (await redis.exists('canary')) === 0
}

/** Whether neither Postgres nor Redis takes anything more. */
async function isFull(): Promise<boolean> {
  const client = new pg.Client({ connectionString: world.environment.DATABASE_URL })
  client.on('error', () => {})
  const large = 'CREATE TEMP TABLE large AS SELECT repeat(md5(n::text), 100) FROM generate_series(1, 5000) AS n'
  try {
    // A new connection needs room, too.
    const refused = await client
      .connect()
      .then(() => client.query(large))
      .then(
        () => undefined,
        (error) => error.code,
      )
    const said = await redis.set('canary', 'full').catch((error) => String(error))
    return (refused === '53100' || !world.canFillDisk) && String(said).includes('OOM')
  } finally {
    await client.end().catch(() => {})
  }
}

const isAway = async () => !(await isReady())

let redis: Redis
beforeAll(async () => {
  redis = new Redis(world.environment.REDIS_URL ?? '')
  redis.on('error', () => {})
  await redis.set('canary', 'here')
})
afterAll(() => redis?.disconnect())

describe('a turn', () => {
  it.each<[FaultKind, () => Promise<boolean>, number?]>([
    ['kill', isAway],
    ['freeze', isAway],
    ['cut-postgres', isAway],
    ['cut-redis', isAway],
    ['cut-temporal', isAway],
    ['mute-postgres', isAway],
    ['mute-redis', isAway],
    ['mute-temporal', isAway],
    ['redis-flushed', isFlushed],
    ['redis-killed', isAway],
    ['postgres-restarted', isAway],
    ['temporal-restarted', isAway],
    // Eight minutes ahead.
    ['clock', isClockAhead, 7008],
    ['full-disk', isFull],
  ])('ends well despite %s where its message has been accepted', async (kind, isShown, lastsMs = LASTS_MS) => {
    const { id } = await createSession()
    await world.begin([{ kind, point: 'message.committed', nth: 1, lastsMs }])
    const [shown, events] = await Promise.all([untilShown(isShown), playTurn(id)])
    expect(typesOf(events).slice(-2)).toEqual(['turn.completed', 'session.idled'])
    expect(
      events.filter(({ type }) => type === 'output.message.completed').map(({ data }) => textOf(data.message)),
    ).toEqual([ANSWER])
    expect(world.happened()).toMatchObject([{ kind, point: 'message.committed', process: 'API and worker' }])
    expect(shown).toBe(true)
  })

  const kill = { kind: 'kill', point: 'message.committed', nth: 1, lastsMs: LASTS_MS } as const
  it.each<[string, PlannedFault['second'], string[]]>([
    ['at once with another', { ...kill, kind: 'redis-flushed', when: 'at once' }, ['kill', 'redis-flushed']],
    ['and another in recovery', { ...kill, point: 'lease.renewed', nth: 2, when: 'in recovery' }, ['kill', 'kill']],
  ])('ends well despite a kill %s', async (_, second, kinds) => {
    const { id } = await createSession()
    await world.begin([{ ...kill, ...(second && { second }) }])
    const events = await playTurn(id)
    expect(typesOf(events).slice(-2)).toEqual(['turn.completed', 'session.idled'])
    expect(world.happened().map(({ kind }) => kind)).toEqual(kinds)
  })
})

describe('a plant', () => {
  it('gets into a module, an SQL function and a workflow', async () => {
    const id = await createScriptedSession(urls[0] ?? '', [{ error: { status: 400, message: 'no' } }])
    const client = new pg.Client({ connectionString: world.environment.DATABASE_URL })
    await client.connect()
    const parts = JSON.stringify({
      message: {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    })
    const { rows } = await client.query('SELECT message_text($1) AS text', [parts])
    await client.end()
    const failed = (await playTurn(id)).find(({ type }) => type === 'turn.failed')
    expect({
      version: (await ask('GET', '/health')).version,
      text: rows[0]?.text,
      code: failed?.data.error_code,
    }).toEqual({
      version: 'planted',
      text: 'a planted b',
      code: 'timeout',
    })
  })
})
