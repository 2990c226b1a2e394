import fc from 'fast-check'
import {
  type Answer,
  type Command,
  pendingOf,
  run,
  type Script,
  type Session,
  type State,
  type Step,
  startState,
} from './model.ts'
import { cancelPlay, endPlay, outliveRequests, type Place, type Play, perform, startPlay } from './play.ts'
import { expectNothingLostOrDoubled, type Race, race, reconnect, releaseSteered, rest } from './watch.ts'

/** What a history does: a command of the model, or a client that reads again from any event on. */
export type Act = Command | Race | { do: 'reconnect'; session: number; from: number }
export type History = Act[]

const SESSIONS = 2
const says = fc.constantFrom('Yes', 'One moment', 'Let me see')
const step = (calls: fc.Arbitrary<Step['calls']>): fc.Arbitrary<Step> =>
  fc.record({ says, calls, holds: fc.integer({ min: 0, max: 2 }).map((draw) => draw === 0) })
const kind = fc.constantFrom<Step['calls'][number]>('works', 'works', 'asks', 'guarded')
const script: fc.Arbitrary<Script> = fc
  .tuple(fc.array(step(fc.array(kind, { minLength: 1, maxLength: 3 })), { maxLength: 2 }), step(fc.constant([])))
  .map(([steps, last]) => [...steps, last])

const session = fc.constantFrom(0, 0, 0, 0, 1, 2)
const send = fc.record({
  do: fc.constant('send' as const),
  session,
  script,
  policy: fc.constantFrom(
    'enqueue' as const,
    'enqueue' as const,
    'reject' as const,
    'interrupt' as const,
    'steer' as const,
  ),
})
const scheduled = send.map((command) => ({ ...command, policy: 'enqueue' as const, by: 'schedule' as const }))
const raced = fc.record({ do: fc.constant('race' as const), session, script, afterMs: fc.nat({ max: 150 }) })
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 12, arbitrary: send },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('release' as const), session }) },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      session,
      call: fc.nat({ max: 2 }),
      how: fc.constantFrom(
        'result' as const,
        'result' as const,
        'error' as const,
        'approve' as const,
        'approve' as const,
        'deny' as const,
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('cancel' as const),
      session,
      which: fc.constantFrom('all' as const, 'first' as const, 'last' as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('fork' as const), session, edit: fc.option(script, { nil: undefined }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reconnect' as const), session, from: fc.nat({ max: 40 }) }) },
  { weight: 2, arbitrary: scheduled },
  { weight: 3, arbitrary: raced },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const), session }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), session }) },
)
/** Messages behind a held turn, and what then happens to the queue: single acts seldom come to that. */
const crowd: fc.Arbitrary<Act[]> = fc
  .record({
    session,
    head: script,
    queued: fc.array(script, { minLength: 1, maxLength: 2 }),
    last: fc.oneof(
      fc.record({ do: fc.constant('cancel' as const), which: fc.constantFrom('all' as const, 'first' as const) }),
      fc.record({
        do: fc.constant('send' as const),
        script,
        policy: fc.constantFrom('interrupt' as const, 'steer' as const, 'steer' as const, 'reject' as const),
      }),
    ),
  })
  .map(({ session, head: [first, ...others], queued, last }) => {
    const scripts = [[{ ...(first as Step), holds: true }, ...others], ...queued]
    const sent = scripts.map((script) => ({ do: 'send' as const, session, script, policy: 'enqueue' as const }))
    return [...sent, { ...last, session }, { do: 'release' as const, session }]
  })
export const history: fc.Arbitrary<History> = fc
  .array(fc.oneof({ weight: 9, arbitrary: act.map((one) => [one]) }, { weight: 1, arbitrary: crowd }), {
    minLength: 3,
    maxLength: 10,
    size: 'max',
  })
  .map((parts) => parts.flat())

/** What a history showed. `slowestMs`: longest time without progress while a process was there to serve. */
export type Outcome = { commands: number; turns: number; repeated: number; slowestMs: number }

/** `isDisturbed`: attempts of the model's calls may begin again. `settle` ends what disturbs, before the last comparison. */
type Circumstances = { isDisturbed?: boolean; settle?: () => Promise<void> }

/**
 * Runs a history against the service and the model, and compares answers and records after each step. Throws at the first
 * difference.
 */
export async function runHistory(
  place: Place,
  acts: History,
  { isDisturbed = false, settle = async () => {} }: Circumstances = {},
): Promise<Outcome> {
  const state = startState(SESSIONS)
  const play = await startPlay(place, SESSIONS)
  try {
    for (const drawn of acts) {
      await outliveRequests(play)
      const act = fitting({ ...drawn, session: drawn.session % state.sessions.length }, state)
      if (act?.do === 'race') await race(play, state, act)
      else if (act?.do === 'reconnect') await reconnect(play, act.session, act.from)
      else if (act !== undefined) {
        if (act.do === 'release' && isDisturbed) await releaseSteered(play, state, act.session)
        await take(play, state, act)
      }
    }
    // Nothing of a history runs during the next one.
    for (const session of state.sessions.keys()) await take(play, state, { do: 'cancel', session, which: 'all' })
    play.clock.stop()
    await settle()
    play.clock.progress()
    await rest(play, state)
    await expectNothingLostOrDoubled(play, state)
  } catch (error) {
    await settle()
    await cancelPlay(play).catch(() => {})
    throw error
  } finally {
    await endPlay(play)
  }
  const turns = state.sessions.reduce((sum, session) => sum + session.turns.length, 0)
  return { commands: acts.length, turns, repeated: play.repeated, slowestMs: play.clock.slowestMs() }
}

/** Returns the act as it makes sense now, if it does. */
function fitting(act: Act, { sessions }: State): Act | undefined {
  const session = sessions[act.session] as Session
  const head = session.turns.find(({ at }) => at !== 'over')
  if (act.do === 'race') return session.isDeleted || head !== undefined ? undefined : act
  if (act.do === 'reconnect') return session.isDeleted ? undefined : act
  if (act.do !== 'send') return act
  // A schedule cannot be made for a session that is gone.
  if (act.by === 'schedule' && session.isDeleted) return undefined
  return act
}

async function take(play: Play, state: State, command: Command): Promise<void> {
  const before = structuredClone(state)
  const expected = run(state, command)
  const tries = play.repeated
  const given = await perform(play, before, command)
  const isKeyed = !['cancel', 'answer', 'delete'].includes(command.do)
  const again = isKeyed || tries === play.repeated ? [] : runAgain(before, state, command, expected)
  expectAnswer(given, expected, again)
  await rest(play, state)
}

/**
 * Returns the answers allowed to a request that is repeated after it has taken effect. It names the same turn, and the same
 * call, as before. After the last reply, the turn may still be on its way to its next calls.
 */
function runAgain(before: State, state: State, command: Command, { status }: Answer): Answer[] {
  if (command.do === 'cancel' && status === 200) return [{ status, code: 'no_op' }]
  if (command.do !== 'answer') return [run(structuredClone(state), command)]
  const again = run(structuredClone(state), { ...command, call: Number.POSITIVE_INFINITY })
  const wasLast = status === 200 && pendingOf(before.sessions[command.session] as Session).length === 1
  return wasLast ? [again, { status: 409, code: 'not_waiting' }] : [again]
}

/** A request without an Idempotency-Key that was sent again may be answered as the first one, or as if it came after it. */
function expectAnswer(given: Answer, expected: Answer, again: Answer[]): void {
  if (again.some(({ status, code }) => given.status === status && given.code === code)) return
  expect(given).toEqual(expected)
}
