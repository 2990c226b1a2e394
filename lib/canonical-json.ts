import { isRecord } from './is-record.ts'

/** Returns a value as JSON whose text depends on the value alone: keys are sorted, nothing is spaced (RFC 8785). */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  if (!isRecord(value)) return JSON.stringify(value) ?? 'null'
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`)
  return `{${fields.join()}}`
}
