import { MAX_SECRET_BYTES, MAX_VALUE_BYTES } from '../../../contract/storage.ts'
import { storableText } from '../../../lib/postgres-text.ts'
import { invalid, noSession, quotaExceeded } from '../../kit/errors.ts'
import { placeOf } from '../../kit/secrets.ts'
import { type SessionScope, WriterLost } from '../../kit/session-scope.ts'
import { waitForLocks } from '../../kit/wait-for-locks.ts'
import type { Deps } from '../deps.ts'
import { SESSION_SECRETS } from './secret-column.ts'
import type { StorageKind } from './session-storage.ts'

const MAX_BYTES: Record<StorageKind, number> = { value: MAX_VALUE_BYTES, secret: MAX_SECRET_BYTES }

type Change = { do: 'set' | 'delete'; kind: StorageKind; name: string; text?: string; secret?: Uint8Array<ArrayBuffer> }
type Existed = { existed: boolean }
type Answer =
  | ({ outcome: 'changed' } & Existed)
  | { outcome: 'repeated'; effect: Existed }
  | { outcome: 'refused'; problem: keyof typeof PROBLEMS }
  | { outcome: 'turn_ended' | 'fenced' | 'session_gone' }

/**
 * Stores a value or secret, once per tool call. Returns whether it existed before. Throws `invalid` for unstorable
 * text, `conflict` beyond a quota, `not_found`, and `WriterLost` for a tool call.
 */
export async function setStored(deps: Deps, scope: SessionScope, kind: StorageKind, name: string, text: string) {
  requireStorable('name', name)
  requireStorable('value', text)
  const bytes = Buffer.byteLength(text)
  const most = MAX_BYTES[kind]
  if (bytes > most) throw invalid(`value: must be at most ${most} bytes of UTF-8 for a ${kind}`)
  const place = placeOf(SESSION_SECRETS, [scope.sessionId, name])
  const stored = kind === 'secret' ? { secret: deps.secrets.encrypt(text, place) } : { text }
  return change(deps, scope, { do: 'set', kind, name, ...stored })
}

/** Deletes a value or secret, once per tool call. Returns whether it existed. Throws as `setStored` does. */
export async function deleteStored(deps: Deps, scope: SessionScope, kind: StorageKind, name: string): Promise<Existed> {
  requireStorable('name', name)
  return change(deps, scope, { do: 'delete', kind, name })
}

/** Throws `invalid` for text that Postgres cannot store, or that UTF-8 cannot represent. */
export function requireStorable(what: string, text: string): void {
  if (storableText(text) !== text)
    throw invalid(`${what}: must not have NUL or lone surrogates; encode it, for example as base64`)
}

async function change(deps: Deps, scope: SessionScope, wanted: Change): Promise<Existed> {
  const answer = await changeInTurn(deps, scope, wanted)
  switch (answer.outcome) {
    case 'changed':
      return { existed: answer.existed }
    case 'repeated':
      return answer.effect
    case 'refused':
      throw quotaExceeded(PROBLEMS[answer.problem](deps, wanted.kind))
    default:
      throw scope.writer === undefined ? noSession() : new WriterLost(answer.outcome)
  }
}

/** Sentences for the problems of change_session_storage. */
const PROBLEMS = {
  too_many: ({ quotas }: Deps, kind: StorageKind) =>
    `A session has at most ${quotas.storage.maxCount} ${kind}s; delete some first`,
  too_large: ({ quotas }: Deps, _kind: StorageKind) =>
    `The values and secrets of a session have at most ${quotas.storage.maxTotalBytes} bytes together; delete some ` +
    'first, or store smaller ones',
}

const changeInTurn = (deps: Deps, { organizationId, sessionId, writer, signal }: SessionScope, wanted: Change) => {
  const { maxCount, maxTotalBytes } = deps.quotas.storage
  const { turnId = null, step = null, fence = null } = writer ?? {}
  const once = async (): Promise<Answer> => {
    const [row] = await deps.db.$queryRaw<{ answer: Answer }[]>`
      SELECT change_session_storage(
        ${organizationId}::uuid, ${sessionId}::uuid, ${turnId}::uuid, ${step}, ${fence}::bigint,
        ${`${wanted.do}_${wanted.kind}`}, ${wanted.name}, ${wanted.text ?? null}, ${wanted.secret ?? null}::bytea,
        ${maxCount}::integer, ${maxTotalBytes}::bigint
      ) AS answer`
    if (row === undefined) throw new Error('A function returns a row.')
    return row.answer
  }
  return waitForLocks(once, 'The values and secrets of the session are', signal)
}
