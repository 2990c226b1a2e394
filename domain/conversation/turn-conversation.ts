import type { Message } from '../../contract/messages.ts'
import { estimateHeapBytes } from '../../lib/heap-size.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import { parseStep } from '../events/log/steps.ts'
import type { ProviderData } from '../models/llm/model.ts'
import { type CallSecret, type MessageSecrets, secretsOf } from '../tools/call-secrets/places.ts'
import type { Beginning, GivenMessage } from './conversation-cache.ts'
import type { Deps } from './deps.ts'
import {
  type ConversationPage,
  conversationSql,
  MAX_CONVERSATION_BYTES,
  type Row,
  readPage,
  readRows,
  toMessage,
} from './read.ts'
import { fromSummary, withoutRequests } from './summaries.ts'

/**
 * Conversation for a model, as stored in events, without `secrets`. `providerData` is what providers need back with
 * their answers, by the message's id.
 */
export type Conversation = {
  messages: Message[]
  providerData: ReadonlyMap<string, ProviderData>
  secrets: MessageSecrets
}

export const NO_CONVERSATION: Conversation = { messages: [], providerData: new Map(), secrets: new Map() }

type TurnScope = { sessionId: string; turnId: string }

/** A conversation being read. `complete` takes the value of `sql`. */
export type ConversationReading = { sql: Prisma.Sql; complete(page: ConversationPage): Promise<Conversation> }

/** Begins to read the conversation of a turn: what this process does not have from an earlier turn of the session. */
export function beginReading(deps: Deps, turn: TurnScope): ConversationReading {
  const known = deps.conversations.get(turn.sessionId)
  const part = known === undefined ? {} : { since: known.through + 1 }
  return {
    sql: conversationSql(turn.turnId, part),
    complete: async (page) => {
      const read = await readRows(deps, { turnId: turn.turnId, part }, page)
      if (known === undefined) return complete(deps, turn, { ...read, isSettled: page.isSettled })
      if (continues(known, read, turn)) return complete(deps, turn, { ...read, isSettled: page.isSettled, known })
      const whole = await readPage(deps, conversationSql(turn.turnId))
      const { rows, isWhole } = await readRows(deps, { turnId: turn.turnId, part: {} }, whole)
      return complete(deps, turn, { rows, isWhole, isSettled: whole.isSettled })
    },
  }
}

type Rows = { rows: Row[]; isWhole: boolean }

/**
 * Reports whether the rows continue the cached beginning without a gap. They do not if the turn has ended and is part
 * of it, or if both together exceed MAX_CONVERSATION_BYTES.
 */
const continues = ({ length }: Beginning, { rows, isWhole }: Rows, { turnId }: TurnScope): boolean =>
  isWhole && rows.at(-1)?.turnId === turnId && length + JSON.stringify(rows).length <= MAX_CONVERSATION_BYTES

/** Read part of a conversation, and the known beginning that precedes it. */
type Read = Rows & { isSettled: boolean; known?: Beginning }

function complete(deps: Deps, turn: TurnScope, whole: Read): Conversation {
  const read = { ...whole, rows: withoutRequests(whole.rows, turn.turnId) }
  const messages = [...(read.known?.messages ?? []), ...read.rows.map((row) => toGiven(row, turn.sessionId))]
  if (read.isWhole && read.isSettled) keep(deps, turn, read, messages)
  return {
    messages: fromSummary(messages.map(({ message }) => message)),
    providerData: new Map(messages.flatMap((one) => entry(one, one.providerData))),
    secrets: new Map(messages.flatMap((one) => entry(one, one.secrets))),
  }
}

const entry = <Value>({ message }: GivenMessage, value: Value | undefined): [string, Value][] =>
  value === undefined ? [] : [[message.id, value]]

/** Caches the messages of all turns before this one, unless they are cached already. */
function keep(deps: Deps, { sessionId, turnId }: TurnScope, { known, rows }: Read, messages: GivenMessage[]): void {
  const own = rows.findIndex((row) => row.turnId === turnId)
  const through = (rows[own]?.inputSequence ?? 0) - 1
  if (own < 0 || through <= (known?.through ?? 0)) return
  const added = messages.slice(known?.messages.length ?? 0, own - rows.length)
  deps.conversations.set(sessionId, {
    through,
    messages: messages.slice(0, own - rows.length),
    length: (known?.length ?? 0) + JSON.stringify(rows.slice(0, own)).length,
    sizeBytes: (known?.sizeBytes ?? 0) + estimateHeapBytes(added),
  })
}

const toGiven = (row: Row, sessionId: string): GivenMessage => ({
  message: toMessage(row, sessionId),
  // Only `answerEvents` writes such data.
  providerData: row.data.provider_data as ProviderData | undefined,
  secrets: secretsIn(row),
})

/** Returns the secrets that a message omits. Only `withSecrets` writes their tokens. */
function secretsIn({ data, step, type, turnId }: Row): CallSecret[] | undefined {
  if (data.secret_tokens === undefined) return undefined
  const iteration = parseStep(step)?.iteration ?? 0
  const kind = type === 'tool.completed' ? 'result' : 'arguments'
  return secretsOf(turnId, iteration, kind, data.secret_tokens as Record<string, number>)
}
