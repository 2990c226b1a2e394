import { DatabaseName } from '../../../../../contract/databases.ts'
import type { Statement } from '../../../../session-data/databases/sqlite-runner/sqlite-runner.ts'
import { ToolError } from '../../capability.ts'

/** Time limit of the tools: 30 s for the SQL itself, and the wait for a process. */
export const SQL_TOOL_MS = 110_000

/** JSON Schema of a name. `parseName` applies the contract's rules for names. */
export const nameSchema = (description: string) => ({ type: 'string', maxLength: 256, description })

/** JSON Schemas of SQL and its parameters. */
export const sqlTextSchema = (description: string) => ({
  type: 'string',
  minLength: 1,
  maxLength: 1_000_000,
  description,
})
export const paramsSchema = {
  type: 'array',
  maxItems: 1000,
  items: { type: ['string', 'number', 'boolean', 'null'] },
  description: 'The values of the ? in the SQL, in their order. Only with a single statement.',
}

/** Checks the name of a database. Throws `ToolError`. */
export function parseName(name: unknown): string {
  const parsed = DatabaseName.safeParse(name)
  if (parsed.success) return parsed.data
  throw new ToolError(`database ${parsed.error.issues[0]?.message ?? 'is wrong'}.`)
}

/** Returns the SQL and the parameters of a call, which the schemas allow. */
export const statementOf = ({ sql, params }: Record<string, unknown>): Statement => ({
  sql: String(sql),
  ...(Array.isArray(params) ? { params } : {}),
})
