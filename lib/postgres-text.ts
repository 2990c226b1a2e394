/**
 * Replaces NUL and lone surrogates, which Postgres cannot store: a model or tool that produces one would fail at every
 * attempt.
 */
export const storableText = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed()

/** Makes every text in a JSON value storable, keys included. The copy lacks what JSON cannot represent. */
export function storableJson<T>(value: T): T {
  const text = JSON.stringify(value)
  // JSON.stringify escapes exactly the characters at fault, so text without these escapes is fine.
  if (text === undefined || !/\\u0000|\\ud[89a-f]/i.test(text)) return value
  return JSON.parse(text, (_key, inner) => {
    if (typeof inner === 'string') return storableText(inner)
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).map(([key, field]) => [storableText(key), field]))
  })
}
