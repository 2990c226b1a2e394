import type { Message } from '../../contract/messages.ts'
import { notFound } from '../errors.ts'
import type { Row } from '../events/event-queries.ts'
import type { ExpandGenerations } from '../events/read.ts'
import { applyCompaction, patchDanglingCalls, type Thresholds } from './compaction.ts'
import { readConversation, readConversations, withoutImages } from './read.ts'

/**
 * What the model calls among the rows were given: nothing is stored twice for it. It is read for the last of them when
 * the first is asked for; the others were given parts of it.
 */
export const expandGenerations: ExpandGenerations = (deps, sessionId, rows) => {
  const calls = rows.filter(({ type }) => type === 'llm.generation')
  const last = calls.at(-1)
  if (last === undefined) return async () => '[]'
  const since = Math.min(...calls.map((call) => partOf(call).since))
  let reading: ReturnType<typeof readConversations> | undefined
  const toText = rememberTexts()
  return async (call) => {
    const part = partOf(call)
    reading ??= readConversations(deps, sessionId, last.turnId, { before: last.sequence, since })
    const conversation = (await reading)?.(call.turnId, part)
    const messages = patchDanglingCalls(conversation ?? (await readConversation(deps, sessionId, call.turnId, part)))
    // A call was given one message at least. They go with their session.
    if (messages.length === 0) throw notFound('Session')
    const thresholds = thresholdsOf(call)
    const given = thresholds === undefined ? messages : applyCompaction(messages, thresholds)
    return `[${given.map(toText).join(',')}]`
  }
}

/** A message is written out once for all calls that were given it. */
function rememberTexts(): (message: Message) => string {
  const texts = new WeakMap<Message, string>()
  return (message) => {
    const known = texts.get(message)
    if (known !== undefined) return known
    const text = JSON.stringify(withoutImages(message))
    texts.set(message, text)
    return text
  }
}

/** Written with the event, by the call that it tells of. */
const thresholdsOf = ({ data }: Row): Thresholds | undefined => data.thresholds as Thresholds | undefined

/** What is dropped are whole exchanges, and one begins with its turn's message. */
const partOf = (call: Row) => ({ before: call.sequence, since: thresholdsOf(call)?.droppedBefore ?? 0 })
