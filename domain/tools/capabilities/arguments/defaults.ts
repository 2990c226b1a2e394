import { isRecord } from '../../../../lib/is-record.ts'

/** Maximum JSON size of a call's defaults, which the record stores with each call. */
const MAX_DEFAULTS_BYTES = 8 * 1024

/**
 * Adds the defaults of required parameters that the model has omitted. Only at the top level: within lists they would
 * multiply. Optional parameters are left to the server, because their defaults may be invalid, and so are defaults
 * beyond the limit.
 */
export function withDefaults(
  { required, properties }: Record<string, unknown>,
  args: Record<string, unknown>,
): Record<string, unknown> {
  if (!Array.isArray(required) || !isRecord(properties)) return args
  const missing = required.flatMap((name): [string, unknown][] => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    return isRecord(schema) && schema.default !== undefined && !Object.hasOwn(args, name)
      ? [[`${name}`, schema.default]]
      : []
  })
  const isLarge = Buffer.byteLength(JSON.stringify(missing)) > MAX_DEFAULTS_BYTES
  return missing.length === 0 || isLarge ? args : Object.fromEntries([...Object.entries(args), ...missing])
}
