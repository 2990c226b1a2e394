import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../support/http.ts'
import { turnsOf } from '../support/record.ts'
import { type Follower, followSession, sendUntilAnswered } from '../support/storm-client.ts'
import { type Answer, type Command, heldOf, pendingOf, type Session, type State } from './model.ts'
import { AGENT, type Stage } from './provider.ts'

/** Time after which a record that differs from the model's is wrong. */
export const GIVE_UP_MS = 60_000
export const PAUSE_MS = 20
/** Less than the time after which nothing may be stuck: a client that waits for a frozen process asks another. */
const TRY_MS = 2000
/** Time in which a process that was frozen or cut off until now does what it was asked for before. */
export const SETTLE_MS = 3000
/** Age at which retention deletes the deltas of complete answers. */
export const RETENTION_MS = 1000

/** The service as a history sees it. */
export type Place = {
  urls: string[]
  stage: Stage
  /** Time since which it can serve, in ms since the epoch. Infinity while it cannot. */
  servedSince(): number
  /** Whether a process may come back that goes on with what it was doing. */
  isAnyAway(): boolean
  expire(): Promise<void>
}

type Answered = { status: number; body: Json }

/** Session of the service, followed by a client from its first event on. */
export type Played = { id: string; follower: Follower }

/** Measures the time without progress during which a process was there to serve. */
type StuckClock = { progress(): void; stuckMs(): number; slowestMs(): number; stop(): void }

function startClock(servedSince: () => number): StuckClock {
  let lastAt = Date.now()
  let slowest = 0
  const stuckMs = () => Date.now() - lastAt
  const timer = setInterval(() => {
    lastAt = Math.max(lastAt, Math.min(servedSince(), Date.now()))
    slowest = Math.max(slowest, stuckMs())
  }, PAUSE_MS)
  const progress = () => {
    lastAt = Date.now()
  }
  return { progress, stuckMs, slowestMs: () => slowest, stop: () => clearInterval(timer) }
}

/** The real side of a history. */
export type Play = {
  sessions: Played[]
  clock: StuckClock
  place: Place
  /** Addresses. The last to answer is in front. */
  urls: string[]
  name: string
  agentId: string
  /** Requests without an answer: their command may have been done before its repetition. */
  repeated: number
  /** Whether a cancel of all turns may be done once more, after what is sent next. */
  mayCancelLate: boolean
}

let plays = 0

export async function startPlay(place: Place, sessions: number): Promise<Play> {
  const name = `play${++plays}`
  const clock = startClock(place.servedSince)
  const play: Play = {
    sessions: [],
    clock,
    place,
    urls: place.urls,
    name,
    agentId: '',
    repeated: 0,
    mayCancelLate: false,
  }
  play.agentId = (await ask(play, 'POST', '/v1/agents', AGENT)).body.id
  for (let index = 0; index < sessions; index++) {
    const { body } = await ask(play, 'POST', '/v1/sessions', { agent_id: play.agentId })
    follow(play, body.id)
  }
  return play
}

const follow = (play: Play, id: string) => play.sessions.push({ id, follower: followSession(play.place.urls, id) })

/** Sends a request until it is answered. */
export async function ask(play: Play, method: string, path: string, body?: unknown): Promise<Answered> {
  const onRepeat = () => {
    play.repeated++
    const [first = '', ...others] = play.urls
    play.urls = [...others, first]
  }
  const patience = { tryMs: TRY_MS, pauseMs: PAUSE_MS, limitMs: GIVE_UP_MS, onRepeat }
  const answered = await sendUntilAnswered(play.urls, method, path, body, patience)
  if (method !== 'GET') play.clock.progress()
  return answered
}

/** Does a command in the service. Returns its answer in the terms of the model. */
export async function perform(play: Play, state: State, command: Command): Promise<Answer> {
  const session = state.sessions[command.session] as Session
  const { id } = play.sessions[command.session] as Played
  const at = `/v1/sessions/${id}`
  const { status, body } = await request(play, session, at, command)
  if (command.do === 'fork' && status === 201) {
    follow(play, body.session.id)
    return { status, made: play.sessions.length - 1 }
  }
  const code = status >= 400 ? body.code : command.do === 'cancel' ? body.status : undefined
  return { status, ...(code && { code }) }
}

function messageOf(play: Play, session: Session, sessionIndex: number, script: unknown, turn = session.turns.length) {
  // A fork's turns are counted on from the copied turns.
  return { content: JSON.stringify({ name: `${play.name}/${sessionIndex}/${turn}`, turn, script }) }
}

async function request(play: Play, session: Session, at: string, command: Command): Promise<Answered> {
  switch (command.do) {
    case 'send': {
      if (command.by === 'schedule') return trigger(play, session, at, command)
      const head = session.turns.find((turn) => turn.at !== 'over')
      const joins = command.policy === 'steer' && head?.by === 'user'
      const message = joins ? { content: 'And this.' } : messageOf(play, session, command.session, command.script)
      return ask(play, 'POST', `${at}/messages`, { message, on_busy: command.policy })
    }
    case 'release': {
      const held = heldOf(session)
      if (held) play.place.stage.release(`${play.name}/${command.session}/${held.turn}`, held.call)
      return { status: session.isDeleted ? 404 : 200, body: { code: 'not_found' } }
    }
    case 'cancel':
      return cancel(play, at, await cancellation(play, session, at, command.which))
    case 'answer': {
      const pending = pendingOf(session)[command.call]?.id ?? 'call_unknown'
      return ask(play, 'POST', `${at}/tool-results`, {
        tool_results: [{ tool_call_id: pending, ...resultOf(command.how) }],
      })
    }
    case 'fork':
      return ask(play, 'POST', `${at}/fork`, await forkOf(play, session, at, command.edit))
    case 'expire':
      await expire(play, session, at)
      return { status: session.isDeleted ? 404 : 200, body: { code: 'not_found' } }
    case 'delete':
      return ask(play, 'DELETE', at)
  }
}

/** Has a schedule post the message. It runs only when it is triggered. */
async function trigger(play: Play, session: Session, at: string, command: Extract<Command, { do: 'send' }>) {
  const message = messageOf(play, session, command.session, command.script)
  const input = { session_id: at.split('/').at(-1), message: message.content }
  const target = { type: 'workflow', name: 'session_message', input }
  const made = await ask(play, 'POST', '/v1/durable/schedules', {
    name: crypto.randomUUID(),
    cron_expression: '0 0 29 2 *',
    target,
  })
  if (made.status !== 201) return made
  const { status, body } = await ask(play, 'POST', `/v1/durable/schedules/${made.body.id}/trigger`)
  // The schedule is triggered, not the message sent: the model has the status of a message.
  return { status: status === 200 ? 201 : status, body }
}

/** Has retention run until a session has only the deltas of answers that are not complete. */
async function expire(play: Play, session: Session, at: string): Promise<void> {
  const isLeft = (events: Json[]) => {
    const complete = new Set(events.filter(({ type }) => type === 'output.message.completed').map(execOf))
    return events.some((event) => event.type === 'output.message.delta' && complete.has(execOf(event)))
  }
  const until = Date.now() + GIVE_UP_MS
  if (session.isDeleted) return
  // What a held call has said must be old enough to be deleted by mistake.
  if (heldOf(session) !== undefined) await sleep(RETENTION_MS + 200)
  do {
    if (Date.now() > until) throw new Error('retention left deltas of a complete answer')
    await play.place.expire()
    await sleep(100)
  } while (isLeft(await eventsOf(play, at)))
}

const execOf = ({ context }: Json): string => context.exec_id

const resultOf = (how: string) =>
  how === 'result'
    ? { result: 'fine' }
    : how === 'error'
      ? { error: 'no' }
      : { result: { approved: how === 'approve' } }

/** Cancels. A client gives a process up that has the request, and may do it once it is back. */
async function cancel(play: Play, at: string, body: { turn_id?: string }): Promise<Answered> {
  const tries = play.repeated
  const answered = await ask(play, 'POST', `${at}/cancel`, body)
  if (body.turn_id === undefined && tries !== play.repeated) play.mayCancelLate = true
  return answered
}

/** Waits until no request that was given up is done any more. */
export async function outliveRequests(play: Play): Promise<void> {
  if (!play.mayCancelLate) return
  play.mayCancelLate = false
  for (let backAt = Date.now(); Date.now() - backAt < SETTLE_MS; await sleep(PAUSE_MS)) {
    if (play.place.isAnyAway()) backAt = Date.now()
    // The record is complete: there is nothing to wait for.
    play.clock.progress()
  }
}

async function cancellation(play: Play, session: Session, at: string, which: string): Promise<{ turn_id?: string }> {
  if (which === 'all') return {}
  const unfinished = session.isDeleted ? [] : session.turns.filter((turn) => turn.at !== 'over')
  const turn = which === 'first' ? unfinished[0] : unfinished.at(-1)
  if (turn === undefined) return {}
  return { turn_id: turnsOf(await eventsOf(play, at))[turn.number] as string }
}

async function forkOf(play: Play, session: Session, at: string, script: unknown): Promise<object> {
  const last = session.ended.at(-1)
  if (script === undefined || last === undefined || session.isDeleted) return {}
  const turn = turnsOf(await eventsOf(play, at))[last]
  return { at: turn, message: messageOf(play, session, play.sessions.length, script, last) }
}

export const eventsOf = async (play: Play, at: string): Promise<Json[]> =>
  (await ask(play, 'GET', `${at}/events`)).body.data

/** Ends the turns of a history that has failed: a held one would keep its place. */
export async function cancelPlay(play: Play): Promise<void> {
  await Promise.all(play.sessions.map(({ id }) => ask(play, 'POST', `/v1/sessions/${id}/cancel`, {})))
}

/** Ends the clients. */
export async function endPlay(play: Play): Promise<void> {
  play.clock.stop()
  await Promise.all(play.sessions.map(({ follower }) => follower.stop()))
}
