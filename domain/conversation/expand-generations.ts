import type { Message } from '../../contract/messages.ts'
import type { Row } from '../events/read/event-queries.ts'
import type { ExpandGenerations } from '../events/read/read.ts'
import { noSession } from '../kit/errors.ts'
import { applyCompaction, patchDanglingCalls, type Thresholds } from './compaction.ts'
import { readConversation, readConversations, withoutImages } from './read.ts'

/**
 * Reconstructs the input of the model calls among the rows, so that nothing is stored twice for it. The conversation is
 * read once, for the last call, when the first is asked for; the other calls were given parts of it.
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
    // Every call was given at least one message. Without any, they were deleted with their session.
    if (messages.length === 0) throw noSession()
    const thresholds = thresholdsOf(call)
    const given = thresholds === undefined ? messages : applyCompaction(messages, thresholds)
    return `[${given.map(toText).join(',')}]`
  }
}

/** Returns a function that serializes each message once for all calls that were given it. */
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

/** Reads the thresholds that the model call recorded with its event. */
const thresholdsOf = ({ data }: Row): Thresholds | undefined => data.thresholds as Thresholds | undefined

/** Selects the part that a call was given. Exchanges are dropped whole, and each begins with its turn's message. */
const partOf = (call: Row) => ({ before: call.sequence, since: thresholdsOf(call)?.droppedBefore ?? 0 })
