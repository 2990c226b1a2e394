import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../support/http.ts'
import { expectSoundRecord, textOf, turnOf, turnsOf } from '../support/record.ts'
import { followSession } from '../support/storm-client.ts'
import { type Event, heldOf, messagesBefore, run, type Script, type Session, type State } from './model.ts'
import { ask, eventsOf, GIVE_UP_MS, PAUSE_MS, type Play, type Played, perform } from './play.ts'
import { compare, observed } from './terms.ts'

/** Time without progress, while a process is there to serve, after which a record stays as it is. */
const STUCK_MS = 15_000

/** Waits until every session's record is the model's. Throws with the difference if it never is. */
export async function rest(play: Play, state: State): Promise<void> {
  for (const [index, session] of state.sessions.entries()) {
    if (session.isDeleted) continue
    const { id } = play.sessions[index] as Played
    await restOf(play, session, `/v1/sessions/${id}`)
  }
}

async function restOf(play: Play, session: Session, at: string): Promise<void> {
  for await (const { events, isLate } of watchRecord(play, at)) {
    const now = observed(events)
    const found = compare(now)
    session.events = session.events.flatMap((event) => brokenOff(event, events, now))
    const expected = compare(session.events)
    if (isSame(found, expected) && isHeldAs(session, events)) return
    const isBeyond = found.length > expected.length && isSame(found.slice(0, expected.length), expected)
    if (isBeyond || isLate) expect(found).toEqual(expected)
    if (isLate) throw new Error(`the held call said: ${JSON.stringify(events.slice(-3))}`)
  }
}

/** Yields a session's events again and again. `isLate`: they stay as they are. */
async function* watchRecord(play: Play, at: string): AsyncGenerator<{ events: Json[]; isLate: boolean }, void> {
  const until = Date.now() + GIVE_UP_MS
  for (let seen = -1; ; ) {
    const events = await eventsOf(play, at)
    // Before the caller has what it waited for, and looks no more.
    if (events.length !== seen) play.clock.progress()
    seen = events.length
    yield { events, isLate: play.clock.stuckMs() > STUCK_MS || Date.now() > until }
    await sleep(PAUSE_MS)
  }
}

/**
 * Lets a held call go on and tells the model how many of the messages that joined the turn it has read: a call that began
 * again has read all that came before it did. Its answer has the number.
 */
export async function releaseSteered(play: Play, state: State, index: number): Promise<void> {
  const session = state.sessions[index] as Session
  const head = session.turns[heldOf(session)?.turn ?? -1]
  if (head === undefined || head.read === head.steers) return
  await perform(play, state, { do: 'release', session: index })
  const own = messagesBefore(session, head.number) + 1
  for await (const { events, isLate } of watchRecord(play, `/v1/sessions/${play.sessions[index]?.id}`)) {
    const ofTurn = events.filter((event) => turnOf(event) === turnsOf(events)[head.number])
    const answer = ofTurn.filter(({ type }) => type === 'output.message.completed')[head.calls - 1]
    if (answer === undefined && !isLate) continue
    const read = Number(/ \((\d+), \d+\)$/.exec(answer ? textOf(answer.data.message) : '')?.[1]) - own
    // Any other number is a difference from the model.
    if (read > head.read && read <= head.steers) head.read = read
    return
  }
}

const INTERRUPTED = / interrupted$/

/**
 * Returns the end of an interrupted answer as it may be: an attempt that began again may have said less, or nothing, of what
 * the one before it had said.
 */
function brokenOff(event: Event, events: Json[], now: Event[]): Event[] {
  if (!INTERRUPTED.test(event.about ?? '')) return [event]
  const turn = turnsOf(events)[event.turn]
  const ofTurn = events.filter((one) => turnOf(one) === turn)
  const asked = ofTurn.findLastIndex(({ type }) => type === 'reason.started')
  const attempts = ofTurn.slice(asked).filter(({ type }) => type === 'output.message.started')
  if (attempts.length < 2 || !ofTurn.some(({ type }) => type === 'turn.cancelled')) return [event]
  const said = now.find((one) => one.turn === event.turn && INTERRUPTED.test(one.about ?? ''))
  if (said === undefined) return []
  return event.about?.startsWith(said.about?.replace(INTERRUPTED, '') ?? '') ? [said] : [event]
}

const isSame = (a: string[], b: string[]): boolean => JSON.stringify(a) === JSON.stringify(b)

/** Reports whether the held call has said what it should, in its latest attempt. */
function isHeldAs(session: Session, events: Json[]): boolean {
  const held = heldOf(session)
  if (held === undefined) return true
  const from = events.findLastIndex(({ type }) => type === 'output.message.started')
  const said = events.slice(from).filter(({ type }) => type === 'output.message.delta')
  return said.at(-1)?.data.accumulated === held.says
}

/** Rejects when a wait takes as long as no outage does. */
async function within(work: Promise<void>, what: string): Promise<void> {
  const late = new AbortController()
  const timer = sleep(GIVE_UP_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`${what} did not come to its end`)
  })
  await Promise.race([work, timer]).finally(() => late.abort())
}

/** Retention may delete deltas while a client is about to read them. */
const withoutDeltas = (events: Json[]): Json[] => events.filter(({ type }) => type !== 'output.message.delta')

/**
 * Sends a message to an idle session and cancels its turn soon after. The turn must end as if undisturbed, or be cancelled
 * with a part of that. The model goes on from what happened.
 */
export async function race(play: Play, state: State, { session: index, script, afterMs }: Race): Promise<void> {
  const command = { do: 'send', session: index, script, policy: 'enqueue' } as const
  const before = structuredClone(state)
  const at = `/v1/sessions/${play.sessions[index]?.id}`
  const { status } = await perform(play, before, command)
  expect(status).toBe(201)
  await sleep(afterMs)
  await perform(play, before, { do: 'cancel', session: index, which: 'all' })
  run(state, command)
  const session = state.sessions[index] as Session
  const turn = session.turns.at(-1)
  if (turn === undefined) return
  const cancelled = { type: 'turn.cancelled', turn: turn.number }
  const events = await whenEnded(play, at, turn.number)
  const whole = compare(session.events)
  const found = compare(observed(events))
  if (found.some((line) => line === `${turn.number} ${cancelled.type}`)) {
    const open =
      / (turn\.cancelled|session\.idled|tool\.completed \S+ cancelled|output\.message\.completed .*interrupted)$/
    const part = found.filter((line) => !line.startsWith(`${turn.number} `) || !open.test(line))
    let next = 0
    for (const line of whole) if (line === part[next]) next++
    // Everything that happened is what should have, in order.
    expect(part.slice(next)).toEqual([])
    const broken = found.filter((line) => INTERRUPTED.test(line)).map((line) => line.replace(INTERRUPTED, ''))
    const held = script.map(({ says }) => `${turn.number} output.message.completed ${says}`)
    expect(broken.filter((text) => ![...whole, ...held].some((line) => line.startsWith(text)))).toEqual([])
  } else expect(found).toEqual(whole)
  const ends = found.filter((line) => new RegExp(`^${turn.number} turn\\.(completed|cancelled|failed)`).test(line))
  expect(ends).toHaveLength(1)
  turn.at = 'over'
  if (!session.ended.includes(turn.number)) session.ended.push(turn.number)
  session.events = observed(events)
  const works = await worksOf(play, at)
  expect(session.works).toEqual(expect.arrayContaining(works))
  expect(works).toEqual([...new Set(works)])
  session.works = works
}

export type Race = { do: 'race'; session: number; script: Script; afterMs: number }

async function whenEnded(play: Play, at: string, turn: number): Promise<Json[]> {
  const until = Date.now() + GIVE_UP_MS
  for (;;) {
    const events = await eventsOf(play, at)
    const last = events.at(-1)
    if (last?.type === 'session.idled' && turnsOf(events).indexOf(turnOf(last)) === turn) return events
    if (Date.now() > until) throw new Error(`the cancelled turn did not end: ${compare(observed(events)).join('\n')}`)
    await sleep(PAUSE_MS)
  }
}

/** Expects that clients and data of every session have everything, once. */
export async function expectNothingLostOrDoubled(play: Play, state: State): Promise<void> {
  for (const [index, session] of state.sessions.entries()) {
    if (session.isDeleted) {
      const sequences = play.sessions[index]?.follower.received.map(({ sequence }) => sequence) ?? []
      expect(sequences).toEqual([...new Set(sequences)].toSorted((a, b) => a - b))
      continue
    }
    const { id, follower } = play.sessions[index] as Played
    const events = await eventsOf(play, `/v1/sessions/${id}`)
    const last = events.at(-1)?.id
    if (last !== undefined)
      await within(
        follower.until((event) => event.id === last),
        `the stream of ${id}`,
      )
    expect(withoutDeltas(follower.received)).toEqual(withoutDeltas(events))
    // Retention may have deleted deltas that the client had not read yet.
    const kept = new Set((await eventsOf(play, `/v1/sessions/${id}`)).map((event) => event.id))
    expect(follower.received.filter((event) => kept.has(event.id)).map((event) => event.id)).toEqual([...kept])
    expect(new Set(follower.received.map((event) => event.id)).size).toBe(follower.received.length)
    if (events.length === events.at(-1)?.sequence) expectSoundRecord(events)
    expect(await worksOf(play, `/v1/sessions/${id}`)).toEqual(session.works.toSorted())
  }
}

async function worksOf(play: Play, at: string): Promise<string[]> {
  const files = await ask(play, 'POST', `${at}/fs/_/grep`, { pattern: '/' })
  const lines = files.body.data.flatMap(({ matches }: Json) => matches.map(({ line }: Json) => `guarded ${line}`))
  const rows = await ask(play, 'POST', `${at}/databases/works/query`, { sql: 'SELECT id FROM works' })
  const ids = rows.status === 404 ? [] : rows.body.rows.map(([id]: string[]) => `works ${id}`)
  return [...lines, ...ids].toSorted()
}

/** Reads a session again from any of its events on, and expects what followed it. */
export async function reconnect(play: Play, index: number, from: number): Promise<void> {
  const { id } = play.sessions[index] as Played
  const events = await eventsOf(play, `/v1/sessions/${id}`)
  const since = events[from % Math.max(events.length, 1)]
  if (since === undefined || since === events.at(-1)) return
  const again = followSession(play.place.urls, id, since.id)
  await within(
    again.until((event) => event.id === events.at(-1).id),
    `another stream of ${id}`,
  )
  await again.stop()
  const later = again.received.slice(0, again.received.findIndex((event) => event.id === events.at(-1).id) + 1)
  expect(withoutDeltas(later)).toEqual(withoutDeltas(events.slice(events.indexOf(since) + 1)))
}
