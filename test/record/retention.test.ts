import { expandGenerations } from '../../domain/conversation/expand-generations.ts'
import type { Deps } from '../../domain/deps.ts'
import { follow, REPLAY_BATCH } from '../../domain/events/read/follow.ts'
import { createEventReader } from '../../domain/events/read/read.ts'
import { deleteOldDeltas } from '../../domain/upkeep/retention.ts'
import { deleteOldSessions } from '../../domain/upkeep/session-deletion/retention.ts'
import { sleep } from '../../lib/sleep.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import {
  call,
  createScriptedSession,
  createSession,
  type Json,
  listEvents,
  waitFor,
  waitUntilIdle,
} from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { createLab } from '../support/lab.ts'
import { countDeltas, insertOldTurns } from '../support/old-turns.ts'
import { expectSoundRecord, textOf, turnsOf, typesOf } from '../support/record.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { callsOf, cancel, clientTool, getTurn, post, postAndAsk, submit, waitForEvent } from '../support/turns.ts'

const WORDS = Array.from({ length: 24 }, (_, index) => `word${index}`).join(' ')
const ANSWER = { thinking: 'Let me think about it.', text: WORDS, tokens_per_second: 120 }
/** Model step of several deltas also on a busy machine. */
const SLOW = { ...ANSWER, tokens_per_second: 40 }
/** Model step that is long enough to act in its middle. */
const LONG = { text: 'la '.repeat(3000), tokens_per_second: 60 }
/** Turn with more events than are searched at once, and another turn. */
const LONG_RECORD = [
  ...Array(25).fill({ thinking: 'So.', text: 'A step.', tool_calls: callsOf('echo') }),
  ANSWER,
  ANSWER,
]
const HOUR_MS = 60 * 60 * 1000
/** Age from which the sessions of a test are old. */
const OLD_MS = 2000

let service: TestService
let deps: Deps
let url: string
beforeAll(async () => {
  service = await startService({ capabilities: [createLab().capability] })
  deps = service.platform.deps
  url = service.url
})
afterAll(() => service.stop())

const deleteNow = (olderThanMs = 0, of = deps) => deleteOldDeltas(of, olderThanMs, new AbortController().signal)

/** Creates a session with answered messages. Returns its record. */
async function createAnswered(turns = 1, steps: object[] = Array(turns).fill(ANSWER)) {
  const id = await createScriptedSession(url, steps, { capabilities: [{ ref: 'lab' }] })
  for (let turn = 0; turn < turns; turn++) await post(url, id)
  return { id, events: await waitUntilIdle(url, id) }
}

const isDelta = ({ type }: Json): boolean => type === 'output.message.delta' || type === 'reason.thinking.delta'
const withoutDeltas = (events: Json[]): Json[] => events.filter((event) => !isDelta(event))
const deltasOf = (events: Json[]): Json[] => events.filter(isDelta)
const get = async (path: string): Promise<Json> => (await call(url, 'GET', path)).body
const views = (id: string) =>
  Promise.all(['', '/messages', '/turns?limit=100'].map((path) => get(`/v1/sessions/${id}${path}`)))

/** Returns dependencies whose SQL statements a test can observe or disturb. */
function watchStatements(before: (sql: string) => Promise<void>, after = (_sql: string, _result: unknown) => {}): Deps {
  const watched = async ({ args, query }: { args: Prisma.Sql; query: (args: Prisma.Sql) => Promise<unknown> }) => {
    await before(args.sql)
    const result = await query(args)
    after(args.sql, result)
    return result
  }
  const db = deps.db.$extends({ query: { $queryRaw: watched, $executeRaw: watched } })
  // The extension adds nothing to the client's interface and removes nothing that the domain uses.
  return { ...deps, db: db as unknown as Deps['db'] }
}

describe('retention of deltas', () => {
  it('deletes the progress of calls, also in a turn that goes on', async () => {
    const steps = [
      { tool_calls: [{ id: 'one', name: 'report', arguments: { ms: 250, times: 100 } }] },
      { tool_calls: [{ id: 'two', name: 'report', arguments: {} }] },
      { tool_calls: callsOf('ask_user') },
      { text: 'done' },
    ]
    const tools = [clientTool('ask_user')]
    const id = await createScriptedSession(url, steps, { capabilities: [{ ref: 'lab' }], tools })
    await postAndAsk(url, id)
    const events = await listEvents(url, id)
    const isProgress = ({ type }: Json): boolean => type === 'tool.progress'
    expect(events.filter(isProgress).length).toBeGreaterThan(2)
    await deleteNow()
    expect(await listEvents(url, id)).toEqual(withoutDeltas(events).filter((event) => !isProgress(event)))
    await cancel(url, id)
  })

  it('deletes the deltas of completed messages and changes nothing else that is visible', async () => {
    const { id, events } = await createAnswered(3)
    const before = await views(id)
    expect(new Set(typesOf(deltasOf(events)))).toEqual(new Set(['output.message.delta', 'reason.thinking.delta']))
    await deleteNow()
    expect(await listEvents(url, id)).toEqual(withoutDeltas(events))
    expect(await views(id)).toEqual(before)
    await post(url, id, 'And now?')
    const more = (await waitUntilIdle(url, id)).slice(withoutDeltas(events).length)
    expect(more[0].sequence).toBe(events.length + 1)
    expect(more.find(({ type }) => type === 'llm.generation').data.messages).toHaveLength(7)
  })

  it('keeps deltas that are not old enough', async () => {
    const old = await createAnswered()
    const recent = await createAnswered()
    const since = Date.parse(recent.events[0].ts)
    await deleteNow(HOUR_MS)
    expect(await listEvents(url, old.id)).toEqual(old.events)
    await deleteNow(Date.now() - since)
    expect(await listEvents(url, old.id)).toEqual(withoutDeltas(old.events))
    expect(await listEvents(url, recent.id)).toEqual(recent.events)
  })

  it('goes by the age of the message and then of the end of its turn, however long ago the turn began', async () => {
    const steps = [{ ...ANSWER, tool_calls: callsOf('ask') }, ANSWER]
    const id = await createScriptedSession(url, steps, { tools: [clientTool('ask')] })
    const turn = await postAndAsk(url, id)
    const startedAt = new Date(Date.now() - 2 * HOUR_MS)
    await deps.db.turn.update({ where: { id: toUuid(turn.id) }, data: { startedAt } })
    const before = await listEvents(url, id)
    expect(deltasOf(before).length).toBeGreaterThan(1)
    await deleteNow(HOUR_MS)
    expect(await listEvents(url, id)).toEqual(before)
    await submit(url, id, [{ tool_call_id: turn.pending_tool_calls[0].id, result: 'yes' }])
    const events = await waitUntilIdle(url, id)
    await deleteNow(HOUR_MS)
    expect(await listEvents(url, id)).toEqual(events)
    await deleteNow()
    expect(await listEvents(url, id)).toEqual(withoutDeltas(events))
  })

  it('deletes the deltas of failed and cancelled turns, and of every attempt at an answer', async () => {
    const failing = { ...ANSWER, error: { status: 503, message: 'no', times: 1, after_text: true, retry_after_ms: 1 } }
    const failed = await createAnswered(1, [{ ...ANSWER, error: { status: 401, message: 'no', after_text: true } }])
    const retried = await createAnswered(1, [failing])
    const cancelled = await createScriptedSession(url, [LONG])
    await post(url, cancelled)
    await waitForEvent(url, cancelled, 'output.message.delta', 2)
    await cancel(url, cancelled)
    await deleteNow()
    for (const id of [failed.id, retried.id, cancelled]) expect(await countDeltas(deps, id)).toBe(0)
    expect(typesOf(retried.events).filter((type) => type === 'output.message.started')).toHaveLength(2)
  })

  it('keeps the deltas of a message that is being written, so that cancelling keeps its text', async () => {
    const calling = { ...ANSWER, tool_calls: callsOf('echo') }
    const id = await createScriptedSession(url, [calling, LONG], { capabilities: [{ ref: 'lab' }] })
    await post(url, id)
    await waitForEvent(url, id, 'output.message.started', 2)
    const second = (events: Json[]) => events.findIndex(({ type }) => type === 'act.completed')
    await waitForEvent(url, id, 'output.message.delta', 15)
    const before = await listEvents(url, id)
    await deleteNow()
    const after = await listEvents(url, id)
    expect(after.slice(0, second(after))).toEqual(withoutDeltas(before.slice(0, second(before))))
    expect(after.slice(second(after))).toEqual(expect.arrayContaining(before.slice(second(before))))
    await cancel(url, id)
    await deleteNow(HOUR_MS)
    const events = await listEvents(url, id)
    const answers = events.filter(({ type }) => type === 'output.message.completed')
    expect(answers).toHaveLength(2)
    expect(textOf(answers[1].data.message)).toBe(deltasOf(events).at(-1).data.accumulated)
    await deleteNow()
    expect(await listEvents(url, id)).toEqual(withoutDeltas(events))
  })

  it('changes nothing in a turn that waits for its client except the deltas of its messages', async () => {
    const steps = [{ ...ANSWER, tool_calls: callsOf('ask') }, ANSWER]
    const id = await createScriptedSession(url, steps, { tools: [clientTool('ask')] })
    const turn = await postAndAsk(url, id)
    const before = await listEvents(url, id)
    expect(deltasOf(before).length).toBeGreaterThan(1)
    await deleteNow()
    expect(await listEvents(url, id)).toEqual(withoutDeltas(before))
    expect(await getTurn(url, id, turn.id)).toEqual(turn)
    await submit(url, id, [{ tool_call_id: turn.pending_tool_calls[0].id, result: 'yes' }])
    const events = await waitUntilIdle(url, id)
    expect(deltasOf(events).length).toBeGreaterThan(1)
    await deleteNow()
    expect(await listEvents(url, id)).toEqual(withoutDeltas(events))
  })

  it('deletes nothing twice, however many run at once', async () => {
    // What another test left running must not end in the middle of this one.
    await waitFor(
      async () => (await deps.db.turn.count({ where: { status: { in: ['queued', 'active'] } } })) === 0,
      'all turns to end',
    )
    await deleteNow()
    const sessions = await Promise.all(Array.from({ length: 4 }, () => createAnswered(2)))
    const deltas = sessions.flatMap(({ events }) => deltasOf(events)).length
    const runs = await Promise.all(Array.from({ length: 5 }, () => deleteNow()))
    const sum = (of: (run: (typeof runs)[number]) => number) => runs.reduce((total, run) => total + of(run), 0)
    expect({ deltas: sum((run) => run.deltas), turns: sum((run) => run.turns) }).toEqual({ deltas, turns: 8 })
    expect(await deleteNow()).toEqual({ deltas: 0, turns: 0, more: false })
    for (const { id, events } of sessions) expect(await listEvents(url, id)).toEqual(withoutDeltas(events))
  })

  it('deletes a large session in batches that never split a message', async () => {
    const id = await createSession(url)
    await insertOldTurns(deps, id, { turns: 1, steps: 5, deltas: 6000 })
    await insertOldTurns(deps, id, { turns: 8, steps: 1, deltas: 3000 })
    const deletions: number[] = []
    const counting = watchStatements(
      async () => {},
      (sql, result) => void (sql.includes('DELETE FROM events') && deletions.push(Number(result))),
    )
    expect(await deleteNow(HOUR_MS, counting)).toEqual({ deltas: 54_000, turns: 9, more: false })
    expect(Math.max(...deletions)).toBeLessThanOrEqual(20_000)
    for (const deleted of deletions) expect(deleted % 3000).toBe(0)
    expect(await countDeltas(deps, id)).toBe(0)
  })

  it('ends before Temporal’s time limit and reports more, which the next run deletes', async () => {
    const id = await createSession(url)
    await insertOldTurns(deps, id, { turns: 3, steps: 1, deltas: 11_000 })
    const now = performance.now.bind(performance)
    let lateMs = 0
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + lateMs)
    // As if each statement took five minutes.
    const slow = watchStatements(
      async () => {},
      (sql) => {
        if (sql.includes('DELETE FROM events')) lateMs += 5 * 60_000
      },
    )
    try {
      expect(await deleteNow(HOUR_MS, slow)).toEqual({ deltas: 22_000, turns: 0, more: true })
    } finally {
      clock.mockRestore()
    }
    expect(await deleteNow(HOUR_MS)).toEqual({ deltas: 11_000, turns: 3, more: false })
  })

  it('does not wait for a locked turn, which the next run marks as done', async () => {
    await deleteNow()
    const { id, events } = await createAnswered(2)
    const [held] = turnsOf(events)
    const deltas = deltasOf(events).length
    await deps.db.$transaction(
      async (db) => {
        await db.$executeRaw`SELECT FROM turns WHERE id = ${toUuid(held ?? '')}::uuid FOR UPDATE`
        expect(await deleteNow()).toEqual({ deltas, turns: 1, more: false })
      },
      { timeout: 30_000 },
    )
    expect(await deleteNow()).toEqual({ deltas: 0, turns: 1, more: false })
    expect(await listEvents(url, id)).toEqual(withoutDeltas(events))
  })

  it('may be killed or cancelled between any two statements', async () => {
    const { id, events } = await createAnswered(2)
    let left = 0
    const dying = watchStatements(async () => {
      if (left-- === 0) throw new Error('killed')
    })
    for (let statements = 0; statements < 3; statements++) {
      left = statements
      await expect(deleteNow(0, dying)).rejects.toThrow('killed')
      const found = await listEvents(url, id)
      expect([events, withoutDeltas(events)]).toContainEqual(found)
    }
    await expect(deleteOldDeltas(deps, 0, AbortSignal.abort(new Error('cancelled')))).rejects.toThrow('cancelled')
    await deleteNow()
    expect(await listEvents(url, id)).toEqual(withoutDeltas(events))
  })
})

describe('a reader whose events retention deletes', () => {
  it('goes on after the id of one, in the list and in a stream', async () => {
    const { id, events } = await createAnswered(2)
    await deleteNow()
    const left = withoutDeltas(events)
    const first = deltasOf(events).at(0)
    const last = deltasOf(events).at(-1)
    for (const gone of [first, last]) {
      const rest = left.filter(({ sequence }) => sequence > gone.sequence)
      expect(await listEvents(url, id, `?since_id=${gone.id}`)).toEqual(rest)
      for (const [query, headers] of [
        [`?since_id=${gone.id}`, {}],
        ['', { 'Last-Event-ID': gone.id }],
      ] as [string, Record<string, string>][]) {
        const stream = await openStream(url, `/v1/sessions/${id}/sse${query}`, { headers })
        await stream.until((frame) => frame.id === events.at(-1).id)
        stream.close()
        expect(stream.events()).toEqual(rest)
      }
    }
  })

  it('gets what is left, from the start or after the id of one, and then live events', async () => {
    const { id, events } = await createAnswered(1, LONG_RECORD)
    await deleteNow()
    const left = withoutDeltas(events)
    const gone = deltasOf(events)
    const starts = [undefined, gone[0], gone[gone.length >> 1], gone.at(-1)]
    const streams = await Promise.all(
      starts.map((start) => openStream(url, `/v1/sessions/${id}/sse${start ? `?since_id=${start.id}` : ''}`)),
    )
    await Promise.all(streams.map((stream) => stream.until((frame) => frame.id === events.at(-1).id)))
    await post(url, id)
    const more = (await waitUntilIdle(url, id)).slice(left.length)
    expect(deltasOf(more).length).toBeGreaterThan(1)
    for (const [index, stream] of streams.entries()) {
      await stream.until((frame) => frame.id === more.at(-1).id)
      stream.close()
      const after = starts[index]?.sequence ?? 0
      expect(stream.events()).toEqual([...left.filter(({ sequence }) => sequence > after), ...more])
    }
  })

  it('does not take a gap for a loss: nothing is read twice', async () => {
    const { id, events } = await createAnswered(1, LONG_RECORD)
    await deleteNow()
    const left = withoutDeltas(events)
    expect(left.length).toBeGreaterThan(REPLAY_BATCH)
    const found: Json[] = []
    const watched = watchStatements(
      async () => {},
      (sql, rows) => void (sql.includes('last_sequence AS through') && found.push(...(rows as Json[]))),
    )
    const batches = follow(watched, toUuid(id), 0, { expand: expandGenerations }, new AbortController().signal)
    const seen: Json[] = []
    while (seen.length < left.length) {
      const { value } = await batches.next()
      if (typeof value === 'object') seen.push(...value.map(({ line }) => JSON.parse(line)))
    }
    await batches.return('aborted')
    expect(seen).toEqual(left)
    // A query that finds nothing returns one row without an event.
    const sequences = found.map(({ sequence }) => sequence).filter((sequence) => sequence !== null)
    expect(sequences).toEqual(left.map(({ sequence }) => sequence))
  })

  it('follows an answer that is being written without a gap', async () => {
    const text = 'la '.repeat(60)
    const id = await createScriptedSession(
      url,
      [{ text, tokens_per_second: 40, tool_calls: callsOf('echo') }, ANSWER],
      {
        capabilities: [{ ref: 'lab' }],
      },
    )
    const stream = await openStream(url, `/v1/sessions/${id}/sse`)
    await post(url, id)
    let isOver = false
    const over = stream
      .until((frame) => frame.event === 'session.idled')
      .then(() => {
        isOver = true
      })
    while (!isOver) await deleteNow()
    await over
    stream.close()
    expectSoundRecord(stream.events())
    await deleteNow()
    expect(withoutDeltas(stream.events())).toEqual(await listEvents(url, id))
  })

  it('gets no partial text when the deletion happens between its two queries', async () => {
    const { id, events } = await createAnswered(1, [SLOW])
    const deltas = deltasOf(events).filter(({ type }) => type === 'output.message.delta')
    expect(deltas.length).toBeGreaterThan(2)
    let deletions = 0
    const racing = watchStatements(async (sql) => {
      if (sql.includes('string_agg') && deletions++ === 0) await deleteNow()
    })
    const after = deltas[1].sequence
    const page = await createEventReader(racing, toUuid(id), { expand: expandGenerations, batch: 200, ahead: false })(
      after,
    )
    expect(deletions).toBe(1)
    expect(page).toMatchObject({ through: events.length, hasMore: false })
    const rest = withoutDeltas(events).filter(({ sequence }) => sequence > after)
    expect(page.events.map(({ line }) => JSON.parse(line))).toEqual(rest)
  })

  it('gets the beginning of a text, then the whole of it, when they are deleted while it reads', async () => {
    const { id, events } = await createAnswered(1, [SLOW])
    const deltas = deltasOf(events).filter(({ type }) => type === 'output.message.delta')
    const last = deltas[1].sequence
    const read = createEventReader(deps, toUuid(id), { expand: expandGenerations, batch: last, ahead: false })
    const first = await read(0)
    await deleteNow()
    const second = await read(first.through ?? 0)
    const seen = [...first.events, ...second.events].map(({ line }) => JSON.parse(line))
    expect(seen).toEqual(events.filter((event) => !isDelta(event) || event.sequence <= last))
    const texts = seen.filter(({ type }) => type === 'output.message.delta').map(({ data }) => data.accumulated)
    expect(texts).toHaveLength(2)
    for (const text of texts) expect(WORDS.startsWith(text)).toBe(true)
    expect(texts).not.toContain(WORDS)
    expect(textOf(seen.find(({ type }) => type === 'output.message.completed')?.data.message)).toBe(WORDS)
  })
})

describe('what a session stores', () => {
  it('is the same for each turn, however long the conversation is by then', async () => {
    const turns = 30
    const { id } = await createAnswered(turns, Array(turns).fill({ text: 'An answer.' }))
    const rows = await deps.db.$queryRaw<{ bytes: number; generation: number }[]>`
      SELECT sum(octet_length(data::text))::int AS bytes,
        sum(octet_length(data::text)) FILTER (WHERE type = 'llm.generation')::int AS generation
      FROM events WHERE session_id = ${toUuid(id)}::uuid AND type NOT LIKE 'session.%' GROUP BY turn_id ORDER BY min(sequence)`
    expect(rows).toHaveLength(turns)
    // Later sequence numbers have more digits.
    for (const { bytes, generation } of rows) {
      expect(bytes).toBeLessThan((rows[0]?.bytes ?? 0) + 40)
      expect(generation).toBeLessThan((rows[0]?.generation ?? 0) + 20)
    }
  })
})

describe('old sessions', () => {
  it('are deleted if nothing happens in them, and nobody has pinned, changed or used them or posts to them later', async () => {
    const names = ['old', 'young', 'pinned', 'waiting', 'scheduled', 'changed', 'used']
    const sessions = await Promise.all(names.map(async (name) => ({ name, id: await createOf(name) })))
    const idOf = (wanted: string) => sessions.find(({ name }) => name === wanted)?.id ?? ''
    const isThere = async (id: string) => (await call(url, 'GET', `/v1/sessions/${id}`)).status === 200
    await sleep(OLD_MS)
    await call(url, 'PATCH', `/v1/sessions/${idOf('young')}`, { title: 'Young' })
    await call(url, 'PUT', `/v1/sessions/${idOf('changed')}/storage/keys/mood`, { value: 'new' })
    const { mutex } = deps.events
    const used = toUuid(idOf('used'))
    // Somebody posts a message after the session was found to be old, and before it is locked.
    const raced: typeof mutex = async (id, work) => {
      if (id === used) await post(url, idOf('used'))
      return mutex(id, work)
    }
    await deleteOldSessions(deps, 0, new AbortController().signal)
    expect(await isThere(idOf('old'))).toBe(true)
    const refused: object[] = []
    const log = Object.assign(Object.create(deps.log), { warn: (fields: object) => refused.push(fields) })
    const racing = { ...deps, log, events: { ...deps.events, mutex: raced } }
    await deleteOldSessions(racing, OLD_MS, new AbortController().signal)
    const left = await Promise.all(sessions.map(async ({ name, id }) => [name, await isThere(id)]))
    // What a busy Postgres refuses is logged, and left to the next run.
    const kept = Object.fromEntries(names.map((name) => [name, name !== 'old' || refused.length > 0]))
    expect(Object.fromEntries(left)).toEqual(kept)
    await deleteOldSessions(deps, OLD_MS, new AbortController().signal)
    expect(await isThere(idOf('old'))).toBe(false)
  })
})

/** Creates a session that is kept for the reason that its name gives. */
async function createOf(name: string): Promise<string> {
  if (name === 'waiting') {
    const id = await createScriptedSession(url, [{ tool_calls: callsOf('a') }], { tools: [clientTool('a')] })
    await postAndAsk(url, id)
    return id
  }
  const id = await createSession(url)
  if (name === 'pinned') expect((await call(url, 'PUT', `/v1/sessions/${id}/pin`)).status).toBeLessThan(300)
  if (name === 'scheduled') {
    const input = { session_id: id, message: 'Hello' }
    const target = { type: 'workflow', name: 'session_message', input }
    const body = { name, cron_expression: '0 0 1 1 *', target }
    expect((await call(url, 'POST', '/v1/durable/schedules', body)).status).toBe(201)
  }
  return id
}
