import type { Deps } from '../../domain/deps.ts'
import {
  type Answer,
  call,
  createScriptedSession,
  type Json,
  listEvents,
  type Target,
  textMessage,
  waitFor,
} from './http.ts'

export const post = (target: Target, id: string, text = 'Go', more: object = {}, query = ''): Promise<Answer> =>
  call(target, 'POST', `/v1/sessions/${id}/messages${query}`, textMessage(text, { ...more }))

export const cancel = (target: Target, id: string, body?: object): Promise<Answer> =>
  call(target, 'POST', `/v1/sessions/${id}/cancel`, body)

export const submit = (target: Target, id: string, tool_results: object[]): Promise<Answer> =>
  call(target, 'POST', `/v1/sessions/${id}/tool-results`, { tool_results })

export const statusOf = async (target: Target, id: string): Promise<string> =>
  (await call(target, 'GET', `/v1/sessions/${id}`)).body.status

/** Returns a session's turns, oldest first. */
export async function listTurns(target: Target, id: string, query = '?limit=100'): Promise<Json[]> {
  const { status, body } = await call(target, 'GET', `/v1/sessions/${id}/turns${query}`)
  if (status !== 200) throw new Error(`turns: ${status} ${JSON.stringify(body)}`)
  return body.data.reverse()
}

export async function getTurn(target: Target, id: string, turnId: string): Promise<Json> {
  return (await call(target, 'GET', `/v1/sessions/${id}/turns/${turnId}`)).body
}

/** Returns the id of the turn that a posted message created. */
export const turnIdOf = (answer: Answer): string => String(answer.body.id).replace('message_', 'turn_')

/** Posts a message and waits until its turn waits for the client. Returns the turn. */
export async function postAndAsk(target: Target, id: string, text?: string): Promise<Json> {
  const turnId = turnIdOf(await post(target, id, text))
  return waitFor(async () => {
    const turn = await getTurn(target, id, turnId)
    return turn.status === 'waiting' && turn
  }, `${turnId} to wait for its client`)
}

/** Waits until the record has `nth` events of a type. Returns all events. */
export const waitForEvent = (target: Target, id: string, type: string, nth = 1): Promise<Json[]> =>
  waitFor(async () => {
    const events = await listEvents(target, id)
    return events.filter((event) => event.type === type).length >= nth && events
  }, `${type} of ${id}`)

export const clientTool = (name: string, properties: object = {}, more: object = {}) => ({
  type: 'client_side',
  name,
  description: `Does ${name}.`,
  parameters: { type: 'object', properties },
  ...more,
})

/** Returns a capability's tool that requires approval. */
export const guardedTool = (name: string) => ({
  type: 'builtin',
  name,
  description: `Does ${name}.`,
  parameters: {},
  policy: 'requires_approval',
})

export const callsOf = (...names: string[]): Json[] => names.map((name) => ({ id: name, name, arguments: {} }))

/** Model call that produces nothing for longer than any test takes. */
export const MUTE = { text: 'never said', delay_ms: 3_600_000 }

/**
 * Creates a session whose first turn is in its model call while others are queued. Returns the turn ids in that order.
 */
export async function createBusySession(
  target: Target,
  queued: number,
  steps: object[] = [MUTE],
): Promise<{ id: string; turns: string[] }> {
  const id = await createScriptedSession(target, steps)
  const turns = [turnIdOf(await post(target, id))]
  await waitForEvent(target, id, 'output.message.started')
  for (let index = 0; index < queued; index++) turns.push(turnIdOf(await post(target, id)))
  return { id, turns }
}

/** Takes a session with one message back to what earlier releases left of it until the turn's first step. */
export async function forgetActivation({ db }: Pick<Deps, 'db'>, sessionUuid: string): Promise<void> {
  await db.$transaction([
    db.event.deleteMany({ where: { sessionId: sessionUuid, sequence: { gt: 1 } } }),
    db.session.update({ where: { id: sessionUuid }, data: { status: 'started', startedAt: null, lastSequence: 1 } }),
  ])
}
