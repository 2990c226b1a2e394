import type { Prisma } from '../../../prisma/generated/client.ts'
import type { SessionScope } from '../../kit/session-scope.ts'
import { toSent } from './change.ts'
import type { MountedFile } from './file-change.ts'

/** Limit that is never reached: the service's own few files fit into every session. */
const UNLIMITED = 2 ** 31 - 1

/** Writes files in the transaction that creates their session, so that neither exists without the other. */
export async function mountFiles(
  db: Prisma.TransactionClient,
  { organizationId, sessionId }: SessionScope,
  files: MountedFile[],
): Promise<void> {
  const writes = files.map(({ path, content }) => {
    return { do: 'write', path, bytes: Buffer.from(content), isBase64: false } as const
  })
  const { changes, contents } = toSent(writes)
  const [row] = await db.$queryRaw<{ outcome: string }[]>`
    SELECT change_session_files(
      ${organizationId}::uuid, ${sessionId}::uuid, NULL, NULL, NULL,
      ${changes}::jsonb, ${contents}::bytea, ${UNLIMITED}::integer, ${UNLIMITED}::bigint
    ) ->> 'outcome' AS outcome`
  if (row?.outcome !== 'changed') throw new Error(`The files of a new session were not written: ${row?.outcome}`)
}
