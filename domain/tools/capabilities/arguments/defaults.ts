import { isRecord } from '../../../../lib/is-record.ts'

/** Limit on the JSON of a call's defaults, as the record has them with each call. */
const MAX_DEFAULTS_BYTES = 8 * 1024

/**
 * Returns arguments with the defaults of the parameters that a schema requires and the model has left out. Only those at
 * the top: within lists they would multiply. An optional one is left to the server, as its default may not even be valid,
 * and so are defaults that are large together.
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
