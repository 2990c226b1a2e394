import type { ContentPart, Message } from '../../../contract/messages.ts'
import { isRecord } from '../../../lib/is-record.ts'
import { toId } from '../../kit/ids.ts'
import { placeOf, UnreadableSecret } from '../../kit/secrets.ts'
import type { Deps } from '../deps.ts'
import { CALL_SECRETS } from './column.ts'
import type { CallSecret, MessageSecrets } from './places.ts'
import type { Hidden } from './redact-call.ts'

/** Maximum size of the secrets of one model call, as for a conversation. Older secrets stay `[secret]`. */
const MAX_BYTES = 32 * 1024 * 1024

/** Messages with their readable secrets. `hasSecrets`: at least one was readable. */
type Decrypted = { messages: Message[]; hasSecrets: boolean }

/**
 * Puts the secrets into the messages for a model. Reads, in one query, only secrets of calls and results that are still
 * in the messages. Secrets that cannot be read stay `[secret]`.
 */
export async function decryptMessages(
  deps: Deps,
  sessionId: string,
  messages: Message[],
  secrets: MessageSecrets,
): Promise<Decrypted> {
  const wanted = messages.toReversed().flatMap(({ id, content }) => {
    const own = secrets.get(id) ?? []
    return own.filter((secret) => content.some((part) => holds(part, secret)))
  })
  if (wanted.length === 0) return { messages, hasSecrets: false }
  const read = await readSecrets(deps, sessionId, wanted)
  const decryptPart = (part: ContentPart, own: readonly CallSecret[]): ContentPart => {
    const secret = own.find((one) => holds(part, one))
    const hidden = secret && read.get(secret)
    return hidden === undefined ? part : putBack(part, hidden)
  }
  const decrypted = messages.map((message) => {
    const own = secrets.get(message.id)
    return own === undefined ? message : { ...message, content: message.content.map((part) => decryptPart(part, own)) }
  })
  return { messages: decrypted, hasSecrets: read.size > 0 }
}

/** Reads the secret arguments of a call. Undefined if they are unreadable. */
export const readArguments = async (deps: Deps, sessionId: string, call: CallSecret): Promise<Hidden | undefined> =>
  (await readSecrets(deps, sessionId, [call])).get(call)

/** Whether a part is the call, or its result with its content, which compaction may have removed. */
const holds = (part: ContentPart, { kind, callId }: CallSecret): boolean =>
  kind === 'arguments'
    ? part.type === 'tool_call' && part.id === callId
    : part.type === 'tool_result' && part.tool_call_id === callId && isRecord(part.result)

function putBack(part: ContentPart, hidden: Hidden): ContentPart {
  if (part.type === 'tool_call') return { ...part, arguments: { ...part.arguments, ...hidden } }
  if (part.type === 'tool_result' && isRecord(part.result)) return { ...part, result: { ...part.result, ...hidden } }
  return part
}

type Row = { number: number; value: Uint8Array }

/** Reads and decrypts secrets, up to the size limit. Omits and logs unreadable secrets. */
async function readSecrets(deps: Deps, sessionId: string, wanted: CallSecret[]): Promise<Map<CallSecret, Hidden>> {
  const turnIds = wanted.map(({ turnId }) => turnId)
  const steps = wanted.map(({ step }) => step)
  const kinds = wanted.map(({ kind }) => kind)
  const rows = await deps.db.$queryRaw<Row[]>`
    SELECT number::int, value FROM (
      SELECT number, value, sum(octet_length(value)) OVER (ORDER BY number) AS bytes
      FROM unnest(${turnIds}::uuid[], ${steps}::text[], ${kinds}::text[])
        WITH ORDINALITY AS wanted (turn_id, step, kind, number)
      JOIN call_secrets stored ON stored.session_id = ${sessionId}::uuid AND stored.turn_id = wanted.turn_id
        AND stored.step = wanted.step AND stored.kind = wanted.kind::call_secret_kind
    ) AS found WHERE bytes <= ${MAX_BYTES}`
  const read = new Map<CallSecret, Hidden>()
  let problem = 'they are not there, or too large together'
  for (const { number, value } of rows) {
    const secret = wanted[number - 1]
    if (secret === undefined) continue
    try {
      read.set(secret, open(deps, sessionId, secret, value))
    } catch (error) {
      if (!(error instanceof UnreadableSecret)) throw error
      problem = error.message
    }
  }
  const unread = wanted.length - read.size
  if (unread > 0) deps.log.warn({ session: toId('session', sessionId), unread, problem }, 'secrets of calls not read')
  return read
}

function open({ secrets }: Deps, sessionId: string, { turnId, step, kind }: CallSecret, value: Uint8Array): Hidden {
  return JSON.parse(secrets.decrypt(value, placeOf(CALL_SECRETS, [sessionId, turnId, step, kind])))
}
