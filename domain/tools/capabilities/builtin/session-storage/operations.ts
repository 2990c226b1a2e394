import type { SessionStorage, StorageKind } from '../../../../session-data/storage/session-storage.ts'
import { ToolError } from '../../capability.ts'

/** Required and optional arguments of each operation. */
export type Operations = Record<'get' | 'set' | 'delete' | 'list', { needs: string[]; takes?: string[] }>

/** JSON Schemas of both tools' common arguments. */
export const commonArguments = {
  operation: { type: 'string', enum: ['get', 'set', 'delete', 'list'] },
  prefix: { type: 'string', maxLength: 255, description: 'For list: only names that begin with this.' },
}

export const nameSchema = (description: string) => ({ type: 'string', minLength: 1, maxLength: 255, description })

export const DEFAULT_LISTED = 100
/** Names have at most 1.5 KB as JSON, so that a list has at most 350 KB. */
const MAX_LISTED = 200

export const limitSchema = {
  type: 'integer',
  minimum: 1,
  description: `For list: how many names, at most ${MAX_LISTED}. Default: ${DEFAULT_LISTED}.`,
}

export const TOOL_MS = 30_000

/** Returns the operation of a call. Throws `ToolError` if an argument is missing or belongs to another operation. */
export function operationOf(args: Record<string, unknown>, operations: Operations): keyof Operations {
  // Checked by the schema.
  const operation = args.operation as keyof Operations
  const { needs, takes = [] } = operations[operation]
  const missing = needs.filter((name) => args[name] === undefined)
  if (missing.length > 0) throw new ToolError(`operation "${operation}" needs ${missing.join(' and ')}.`)
  const possible = ['operation', ...needs, ...takes]
  const others = Object.keys(args).filter((name) => !possible.includes(name))
  if (others.length > 0) {
    throw new ToolError(`operation "${operation}" takes ${[...needs, ...takes].join(', ')}, not ${others.join(', ')}.`)
  }
  return operation
}

/** Lists names for a tool. Throws `ToolError` for an offset beyond the end. */
export async function listNames(storage: SessionStorage, kind: StorageKind, args: Record<string, unknown>) {
  const offset = Number(args.offset ?? 0)
  const limit = Math.min(Number(args.limit ?? DEFAULT_LISTED), MAX_LISTED)
  const found = await storage.list(kind, { prefix: String(args.prefix ?? ''), offset, limit: limit + 1 })
  if (found.length === 0 && offset > 0) throw new ToolError(`offset is ${offset}, but there are fewer names.`)
  return { items: found.slice(0, limit), next_offset: found.length > limit ? offset + limit : null }
}
