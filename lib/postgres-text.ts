/** Postgres takes neither NUL nor half a surrogate pair; a model or a tool that says one would fail at every attempt. */
export const storableText = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()

/** The same for every text in a JSON value, keys too. What JSON does not hold is left out. */
export function storableJson<T>(value: T): T {
  const text = JSON.stringify(value)
  // What JSON has escaped is all that can be wrong; without one of these nothing is.
  if (text === undefined || !/\\u0000|\\ud[89a-f]/i.test(text)) return value
  return JSON.parse(text, (_key, inner) => {
    if (typeof inner === 'string') return storableText(inner)
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).map(([key, field]) => [storableText(key), field]))
  })
}
