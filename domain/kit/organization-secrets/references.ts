/** Reference to a secret in a header or a key. */
const REFERENCE = /\{\{secret:([A-Za-z_][A-Za-z0-9_-]{0,63})\}\}/g
/** Beginning of something that is meant to be a reference. */
const ATTEMPT = /\{\{\s*secrets?\s*:/i

/** Returns the names of the secrets to which texts refer, each once. */
export const namesIn = (texts: readonly string[]): string[] => [
  ...new Set(texts.flatMap((text) => [...text.matchAll(REFERENCE)].flatMap(([, name]) => name ?? []))),
]

/** Returns the name of the secret if the whole text is one reference. */
export const nameIn = (text: string): string | undefined => {
  const [name] = namesIn([text])
  return text === `{{secret:${name}}}` ? name : undefined
}

/** Tells whether a text has a reference that would not be recognized. */
export const hasMalformed = (text: string): boolean => ATTEMPT.test(text.replaceAll(REFERENCE, ''))

/** Puts values in place of references. The values' own text is not searched for references. */
export const fillIn = (text: string, valueFor: (name: string) => string): string =>
  text.replaceAll(REFERENCE, (_, name: string) => valueFor(name))
