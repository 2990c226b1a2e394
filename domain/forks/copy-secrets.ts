import type { CallSecretKind, Prisma } from '../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { conflict, quotaExceeded } from '../kit/errors.ts'
import { type EncryptedColumn, placeOf, UnreadableSecret } from '../kit/secrets.ts'
import { SESSION_SECRETS } from '../session-data/storage/secret-column.ts'
import { CALL_SECRETS } from '../tools/call-secrets/column.ts'

/** Limit on the secrets of calls that a fork gets: each is decrypted and encrypted again. */
const MAX_CALL_SECRETS = 2000

type Copy = { from: string; to: string; turns: { from: string[]; to: string[] } }

/** Copies a session's secrets, as they are now, and the secrets of its copied calls. Throws `conflict` for an unreadable one. */
export async function copySecrets(deps: Deps, db: Prisma.TransactionClient, { from, to, turns }: Copy): Promise<void> {
  const stored = await db.sessionSecret.findMany({ where: { sessionId: from } })
  const again = (column: EncryptedColumn, value: Uint8Array, was: string[], is: string[]) =>
    encryptAgain(deps, value, placeOf(column, was), placeOf(column, is))
  await db.sessionSecret.createMany({
    data: stored.map((row) => {
      const value = again(SESSION_SECRETS, row.value, [from, row.name], [to, row.name])
      return { ...row, sessionId: to, value }
    }),
  })
  const copyOf = new Map(turns.from.map((turnId, index) => [turnId, turns.to[index]]))
  const ofCalls = await db.callSecret.findMany({
    where: { sessionId: from, turnId: { in: turns.from } },
    take: MAX_CALL_SECRETS + 1,
  })
  if (ofCalls.length > MAX_CALL_SECRETS) {
    throw quotaExceeded(`secrets: a fork gets the secrets of at most ${MAX_CALL_SECRETS} calls; leave it out`)
  }
  await db.callSecret.createMany({
    data: ofCalls.flatMap(({ turnId: of, step, kind, value }) => {
      const turnId = copyOf.get(of)
      if (turnId === undefined) return []
      const keys = (sessionId: string, turn: string): [string, string, string, CallSecretKind] => [
        sessionId,
        turn,
        step,
        kind,
      ]
      return [
        { sessionId: to, turnId, step, kind, value: again(CALL_SECRETS, value, keys(from, of), keys(to, turnId)) },
      ]
    }),
  })
}

function encryptAgain({ secrets }: Deps, value: Uint8Array, was: string, is: string): Uint8Array<ArrayBuffer> {
  try {
    return secrets.encrypt(secrets.decrypt(value, was), is)
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    throw conflict('secrets: one of the session cannot be read; set it again, or fork without secrets')
  }
}
