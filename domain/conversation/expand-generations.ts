import type { Message } from '../../contract/messages.ts'
import type { Row } from '../events/read/event-queries.ts'
import type { ExpandGenerations } from '../events/read/read.ts'
import { noSession } from '../kit/errors.ts'
import { applyCompaction, patchDanglingCalls, type Thresholds } from './compaction.ts'
import { readConversation, readConversations, withoutImages } from './read.ts'

/**
 * Reconstructs the input of the model calls among the rows, so that it need not be stored again. The conversation is
 * read once, for the last call, when the first input is requested; the other calls had parts of it.
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
    // Every call had at least one message. If there are none, they were deleted with their session.
    if (messages.length === 0) throw noSession()
    const thresholds = thresholdsOf(call)
    const given = thresholds === undefined ? messages : applyCompaction(messages, thresholds)
    return `[${given.map(toText).join(',')}]`
  }
}

/** Returns a function that serializes each message once for all its calls. */
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

/** Reads the thresholds recorded with the model call's event. */
const thresholdsOf = ({ data }: Row): Thresholds | undefined => data.thresholds as Thresholds | undefined

/** Selects a call's part. Exchanges are dropped whole, and each begins with its turn's message. */
const partOf = (call: Row) => ({
  before: call.sequence,
  since: thresholdsOf(call)?.droppedBefore ?? 0,
  steeredThrough: Number(call.data.steered_through ?? 0),
})
