import type { Prisma } from '../../../prisma/generated/client.ts'
import { DomainError } from '../errors.ts'
import { hasMalformed, namesIn } from './references.ts'
import { hostProblem } from './resolve.ts'

/** Text that may name secrets, and its field, which errors name. */
export type Naming = { field: string; text: string }

/** Client for reading, also of a transaction. */
type Reads = Pick<Prisma.TransactionClient, 'organizationSecret'>

/**
 * Throws `unprocessable` for references to secrets that do not exist, or that may not be sent to `url`. Reads the record
 * only if the texts name secrets. Their use checks the same again, because secrets change.
 */
export async function checkReferences(
  db: Reads,
  organizationId: string,
  texts: readonly Naming[],
  url?: string,
): Promise<void> {
  for (const { field, text } of texts) {
    if (hasMalformed(text)) throw refused(field, 'must name a secret as {{secret:NAME}}')
  }
  const names = namesIn(texts.map(({ text }) => text))
  if (names.length === 0) return
  const where = { organizationId, name: { in: names } }
  const rows = await db.organizationSecret.findMany({ where, select: { name: true, hosts: true } })
  for (const { field, text } of texts) {
    for (const name of namesIn([text])) {
      const secret = rows.find((row) => row.name === name)
      if (secret === undefined) throw refused(field, `there is no secret ${name}; GET /v1/secrets lists them`)
      const problem = url === undefined ? undefined : hostProblem(secret, url)
      if (problem !== undefined) throw refused(field, problem)
    }
  }
}

/** Returns the texts of headers with their fields. */
export const namingHeaders = (field: string, headers: Record<string, string>): Naming[] =>
  Object.entries(headers).map(([name, text]) => ({ field: `${field}.${name}`, text }))

const refused = (field: string, problem: string) => new DomainError('unprocessable', `${field}: ${problem}`, { field })
