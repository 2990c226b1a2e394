/**
 * The promises of the service as a program without input or output: what it answers to a command, and what each session's
 * record is once nothing happens by itself any more. A state in which a model call is held, a client is awaited, or every
 * turn has ended is such a rest; commands are given at rest, so there is one right record for each history.
 *
 * Left out are events that a repeated attempt may record again (`output.message.started`, deltas, progress) and the order
 * among calls that run at the same time.
 */

/** A call of a tool that the service runs, of a tool of the client, or of a tool that needs an approval before it runs. */
export type Kind = 'works' | 'asks' | 'guarded'
/** One call of a turn's model. A held one has said `says` and goes on when the test lets it. */
export type Step = { says: string; calls: Kind[]; holds: boolean }
/** Steps of a turn. The model calls no tools in the last one. */
export type Script = Step[]
export type Policy = 'enqueue' | 'reject' | 'interrupt' | 'steer'

export type Command =
  | { do: 'send'; session: number; script: Script; policy: Policy; by?: 'schedule' }
  | { do: 'release'; session: number }
  | { do: 'cancel'; session: number; which: 'all' | 'first' | 'last' }
  | { do: 'answer'; session: number; call: number; how: 'result' | 'error' | 'approve' | 'deny' }
  | { do: 'fork'; session: number; edit: Script | undefined }
  | { do: 'delete'; session: number }
  | { do: 'expire'; session: number }

/** What a command is answered: a status, and for a refusal its code. `made`: index of the session that it made. */
export type Answer = { status: number; code?: string; made?: number }

/** Event of a record. `turn` counts the turns of the session in the order of their messages. */
export type Event = { type: string; turn: number; about?: string }

type Call = { id: string; kind: Kind; state: 'open' | 'approved' | 'over'; asked: boolean }
type Turn = {
  number: number
  script: Script
  by: 'user' | 'schedule'
  isActivated: boolean
  at: 'queued' | 'held' | 'waiting' | 'runs' | 'over'
  /** Number of the model's calls that have begun. */
  calls: number
  act: Call[]
  /** Messages that joined the turn, and how many of them a call of the model has read. */
  steers: number
  read: number
}
export type Session = {
  turns: Turn[]
  /** Numbers of the turns that have ended, in the order of their ends. */
  ended: number[]
  events: Event[]
  isDeleted: boolean
  /** Work of calls that the session's data must show, each once. */
  works: string[]
}
/** State of all sessions of a history. */
export type State = { sessions: Session[] }

export const startState = (sessions: number): State => ({ sessions: Array.from({ length: sessions }, newSession) })

const newSession = (): Session => ({ turns: [], ended: [], events: [], isDeleted: false, works: [] })

/** Does a command, and everything that follows from it by itself. Changes the state. */
export function run(state: State, command: Command): Answer {
  const session = state.sessions[command.session]
  if (session === undefined) throw new Error(`there is no session ${command.session}`)
  if (session.isDeleted) return { status: 404, code: 'not_found' }
  const answer = perform(state, session, command)
  goOn(session)
  return answer
}

function perform(state: State, session: Session, command: Command): Answer {
  switch (command.do) {
    case 'send':
      return send(session, command)
    case 'release':
      return release(session)
    case 'cancel':
      return cancel(session, command.which)
    case 'answer':
      return answer(session, command)
    case 'fork':
      return fork(state, session, command.edit)
    case 'expire':
      return { status: 200 }
    case 'delete':
      session.isDeleted = true
      return { status: 204 }
  }
}

/** Returns the turn that runs, waits or is next: one at a time, in the order of their messages. */
const headOf = ({ turns }: Session): Turn | undefined => turns.find(({ at }) => at !== 'over')
const unfinishedOf = ({ turns }: Session): Turn[] => turns.filter(({ at }) => at !== 'over')

/** Calls of the turn that waits, to which its client has not replied. */
export const pendingOf = (session: Session): { id: string; kind: Kind }[] => {
  const head = headOf(session)
  return head?.at === 'waiting' ? head.act.filter(awaitsClient) : []
}

/** What the held call of a session has said, if there is one. */
export function heldOf(session: Session): { turn: number; call: number; says: string } | undefined {
  const head = headOf(session)
  if (head?.at !== 'held') return undefined
  return { turn: head.number, call: head.calls, says: stepOf(head).says }
}

const awaitsClient = ({ kind, state }: Call): boolean => kind !== 'works' && state === 'open'

// Messages

function send(session: Session, { script, policy, by }: Extract<Command, { do: 'send' }>): Answer {
  const head = headOf(session)
  if (policy === 'reject' && head !== undefined) return { status: 409, code: 'session_busy' }
  // Only the turn's author may join it.
  if (policy === 'steer' && head !== undefined && head.by === (by ?? 'user')) return steer(session, head)
  if (policy === 'interrupt') for (const turn of unfinishedOf(session)) end(session, turn, 'cancelled')
  else if (head?.at === 'waiting') end(session, head, 'cancelled')
  accept(session, script, by ?? 'user')
  return { status: 201 }
}

function accept(session: Session, script: Script, by: Turn['by']): void {
  const isFirst = session.turns.length === 0
  const isIdle = headOf(session) === undefined
  const turn: Turn = {
    number: session.turns.length,
    script,
    by,
    isActivated: false,
    at: 'queued',
    calls: 0,
    act: [],
    steers: 0,
    read: 0,
  }
  session.turns.push(turn)
  record(session, turn, 'input.message')
  if (isFirst) record(session, turn, 'session.started')
  if (isIdle) activate(session, turn)
}

function activate(session: Session, turn: Turn): void {
  turn.isActivated = true
  record(session, turn, 'session.activated')
}

function steer(session: Session, turn: Turn): Answer {
  turn.steers++
  record(session, turn, 'input.message', 'joins')
  return { status: 201 }
}

// A turn

const stepOf = ({ script, calls }: Turn): Step => script[calls - 1] ?? { says: 'Noted', calls: [], holds: false }

/** Runs the turn at the head of the queue, and those after it, until one holds or waits. */
function goOn(session: Session): void {
  for (;;) {
    const turn = headOf(session)
    if (turn === undefined || turn.at !== 'queued') return
    if (!turn.isActivated) activate(session, turn)
    record(session, turn, 'turn.started')
    reason(session, turn)
  }
}

/** Begins a call of the model, which reads every message that has joined the turn. */
function reason(session: Session, turn: Turn): void {
  turn.calls++
  turn.read = turn.steers
  turn.at = 'runs'
  record(session, turn, 'reason.started')
  if (stepOf(turn).holds) turn.at = 'held'
  else reply(session, turn)
}

function release(session: Session): Answer {
  const head = headOf(session)
  if (head?.at === 'held') reply(session, head)
  return { status: 200 }
}

/** Records an answer of the model. It is complete, or not there at all. */
function reply(session: Session, turn: Turn): void {
  const { says, calls } = stepOf(turn)
  turn.at = 'runs'
  turn.act = calls.map((kind, place) => ({ id: callId(turn, place), kind, state: 'open', asked: false }))
  record(session, turn, 'llm.generation')
  record(session, turn, 'output.message.completed', answerOf(session, turn, says))
  record(session, turn, 'reason.completed')
  if (calls.length === 0) return void finish(session, turn)
  record(session, turn, 'act.started', turn.act.map(({ id }) => id).join())
  for (const call of turn.act.filter(({ kind }) => kind === 'works')) work(session, turn, call)
  const asked = turn.act.filter(awaitsClient)
  if (asked.length === 0) return void reason(session, closeAct(session, turn))
  record(session, turn, 'tool.call_requested', asked.map(({ id }) => id).join())
  turn.at = 'waiting'
}

export const callId = ({ number, calls }: Pick<Turn, 'number' | 'calls'>, place: number): string =>
  `call_${number}_${calls}_${place}`

/**
 * An answer ends with the numbers of the user's messages and of the results that the model was given: all before the turn,
 * and its own. Every call has a result.
 */
function answerOf(session: Session, turn: Turn, says: string): string {
  const acts = session.events.filter(({ type, turn: number }) => type === 'act.started' && number <= turn.number)
  const results = acts.reduce((sum, { about = '' }) => sum + about.split(',').length, 0)
  return `${says} (${messagesBefore(session, turn.number) + 1 + turn.read}, ${results})`
}

/** Number of the user's messages before a turn's own. */
export const messagesBefore = ({ turns }: Session, turn: number): number =>
  turns.slice(0, turn).reduce((sum, { steers }) => sum + 1 + steers, 0)

/** Runs a call of the service once, whatever happens meanwhile. */
function work(session: Session, turn: Turn, call: Call): void {
  if (call.kind === 'works') record(session, turn, 'tool.started', call.id)
  call.state = 'over'
  session.works.push(`${call.kind} ${turn.number}/${call.id}`)
  record(session, turn, 'tool.completed', `${call.id} success`)
}

function closeAct(session: Session, turn: Turn): Turn {
  record(session, turn, 'act.completed')
  return turn
}

/** A turn ends with an answer that has read every message which joined the turn. */
function finish(session: Session, turn: Turn): void {
  if (turn.read < turn.steers) return void reason(session, turn)
  end(session, turn, 'completed')
  idle(session, turn)
}

/** Ends a turn, once. The text of a held answer stays, and each open call gets a result. */
function end(session: Session, turn: Turn, how: 'completed' | 'cancelled'): void {
  if (turn.at === 'held') record(session, turn, 'output.message.completed', `${stepOf(turn).says} interrupted`)
  if (turn.at === 'waiting') {
    for (const { id } of turn.act.filter(({ state }) => state !== 'over'))
      record(session, turn, 'tool.completed', `${id} cancelled`)
  }
  turn.at = 'over'
  session.ended.push(turn.number)
  record(session, turn, `turn.${how}`)
}

/** A session is idle as soon as it has no unfinished turn. */
function idle(session: Session, turn: Turn): void {
  if (headOf(session) === undefined) record(session, turn, 'session.idled')
}

// Of the client

function cancel(session: Session, which: 'all' | 'first' | 'last'): Answer {
  const unfinished = unfinishedOf(session)
  const chosen = which === 'all' ? unfinished : unfinished.slice(which === 'first' ? 0 : -1).slice(0, 1)
  for (const turn of chosen) {
    end(session, turn, 'cancelled')
    idle(session, turn)
  }
  return { status: 200, code: chosen.length === 0 ? 'no_op' : 'cancelled' }
}

/** Replies to one of the calls that wait. A reply counts once; the turn goes on after the last. */
function answer(session: Session, { call: place, how }: Extract<Command, { do: 'answer' }>): Answer {
  const head = headOf(session)
  const pending = head?.at === 'waiting' ? head.act.filter(awaitsClient) : []
  if (head === undefined || pending.length === 0) return { status: 409, code: 'not_waiting' }
  const call = pending[place]
  if (call === undefined) return { status: 400, code: 'invalid' }
  const isGuarded = call.kind === 'guarded'
  if (isGuarded && how === 'result') return { status: 400, code: 'invalid' }
  call.state = isGuarded && how === 'approve' ? 'approved' : 'over'
  if (call.state === 'approved') record(session, head, 'tool.started', call.id)
  else record(session, head, 'tool.completed', `${call.id} ${isGuarded || how === 'error' ? 'error' : 'success'}`)
  if (!head.act.some(awaitsClient)) proceed(session, head)
  return { status: 200 }
}

/** Runs what was approved, and asks the model again. */
function proceed(session: Session, turn: Turn): void {
  for (const call of turn.act.filter(({ state }) => state === 'approved')) work(session, turn, call)
  reason(session, closeAct(session, turn))
}

/** Copies all turns before the first unfinished one; if the turn that ended last is edited, all turns before that one. */
function fork(state: State, session: Session, edit: Script | undefined): Answer {
  const last = session.ended.at(-1)
  const isEdit = edit !== undefined && last !== undefined
  const ended = headOf(session)?.number ?? session.turns.length
  if (isEdit && last > ended) return { status: 409, code: 'session_busy' }
  const kept = isEdit ? last : ended
  const made = structuredClone({ ...session, turns: session.turns.slice(0, kept) })
  made.events = made.events.filter(({ turn }) => turn < kept)
  made.ended = made.ended.filter((turn) => turn < kept)
  state.sessions.push(made)
  if (isEdit) accept(made, edit, 'user')
  goOn(made)
  return { status: 201, made: state.sessions.length - 1 }
}

function record(session: Session, { number }: Turn, type: string, about?: string): void {
  session.events.push({ type, turn: number, ...(about !== undefined && { about }) })
}
