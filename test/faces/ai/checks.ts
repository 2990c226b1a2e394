import { call, type Json, type Target } from '../../support/http.ts'
import { expectSoundRecord } from '../../support/record.ts'
import { partsOf, textOf, toolParts } from './page.ts'
import type { Part, UiMessage } from './versions.ts'

/** Stored messages of one turn, and its outcome. */
export type StoredTurn = { id: string; status: string; asked: Json; answers: Json[]; results: Json[] }

/** Returns the one session of an agent. A chat must not have got a second one. */
export async function sessionOf(target: Target, agentId: string): Promise<string> {
  const { body } = await call(target, 'GET', `/v1/sessions?agent_id=${agentId}`)
  expect(body.data).toHaveLength(1)
  return body.data[0].id
}

/** Reads a session's turns over REST, oldest first, and checks its record. */
export async function readTurns(target: Target, sessionId: string): Promise<StoredTurn[]> {
  const read = async (what: string): Promise<Json[]> =>
    (await call(target, 'GET', `/v1/sessions/${sessionId}/${what}`)).body.data
  const [events, stored, turns] = await Promise.all([read('events'), read('messages'), read('turns?limit=100')])
  expectSoundRecord(events)
  return turns.toReversed().map(({ id, status }) => {
    const asked = stored.find((message) => message.id === id.replace('turn_', 'message_'))
    const own = stored.filter(({ turn_id }) => turn_id === id)
    return {
      id,
      status,
      asked,
      answers: own.filter(({ role }) => role === 'agent'),
      results: own.filter(({ role }) => role === 'tool_result').flatMap(({ content }) => content),
    }
  })
}

const joined = (content: Json[]): string => content.map(({ text }) => text ?? '').join('')

/** Expects that messages of a page are the stored turns: each question and answer once, with the very same text. */
export function expectShown(messages: UiMessage[], turns: StoredTurn[]): void {
  expect(messages.map(({ id }) => id)).toEqual([...new Set(messages.map(({ id }) => id))])
  const shown = messages.map((message) => ({
    role: message.role,
    text: textOf(message),
    thinking: thinkingOf(message),
  }))
  const stored = turns.flatMap(({ asked, answers }) => [
    { role: 'user', text: joined(asked.content), thinking: '' },
    // A turn without an answer may show nothing, or a message without parts.
    ...(answers.length === 0 ? [] : [{ role: 'assistant', text: answerText(answers), thinking: thoughts(answers) }]),
  ])
  const isEmpty = ({ role, text, thinking }: { role: string; text: string; thinking: string }) =>
    role === 'assistant' && text === '' && thinking === ''
  expect(shown.filter((message) => !isEmpty(message))).toEqual(stored.filter((message) => !isEmpty(message)))
  expect(messages.flatMap(toolParts).map(({ toolCallId }) => toolCallId)).toEqual(
    turns.flatMap(({ answers }) => answers.flatMap(({ content }) => callsOf(content))),
  )
}

const thinkingOf = (message: UiMessage): string =>
  partsOf(message, 'reasoning')
    .map(({ text }) => text)
    .join('')
const answerText = (answers: Json[]): string => answers.map(({ content }) => joined(content)).join('')
const thoughts = (answers: Json[]): string => answers.map(({ thinking }) => thinking ?? '').join('')
const callsOf = (content: Json[]): string[] => content.filter(({ type }) => type === 'tool_call').map(({ id }) => id)

const CLOSED = ['done', 'output-available', 'output-error', 'output-denied']

/** Expects that no part of the messages is still being written, or waits for anything. */
export function expectNothingOpen(messages: UiMessage[]): void {
  const open = messages
    .filter(({ role }) => role === 'assistant')
    .flatMap(({ parts }) => parts)
    .filter(({ state }) => state !== undefined && !CLOSED.includes(state))
  expect(open).toEqual([])
}

/** A live page of version 5 keeps the question that its user has answered. */
const isKept = ({ type }: Part): boolean => type !== 'data-approval'
/** Who ran a call, and who approved it, is of no use after its end, and a page loaded anew is not told. */
const ended = ({ id: _, providerExecuted, approval, ...part }: Part): object =>
  part.state?.startsWith('output-') ? part : { ...part, providerExecuted, approval }
const isShown = ({ type }: Part): boolean => type !== 'step-start'

/** Form of messages that a live page and a page loaded anew must have in common. */
export const comparable = (messages: UiMessage[]): object[] =>
  messages
    // A turn that failed before its answer leaves an empty message in a live page.
    .filter(({ parts }) => parts.some(isShown))
    .map(({ id, role, parts }) => ({
      // A page makes the ids of what its user says.
      id: role === 'user' ? 'of a user' : id,
      role,
      parts: JSON.parse(JSON.stringify(parts.filter(isKept).map(ended))),
    }))
