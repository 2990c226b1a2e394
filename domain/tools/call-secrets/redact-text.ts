import { type Hidden, MASK } from './redact-call.ts'

/** A shorter text would be found in words that have nothing to do with it. */
const MIN_LENGTH = 3
/** Limit on the characters that are searched, once for each secret: about a tenth of a second. */
const MAX_SEARCHED = 200_000_000
const LEFT_OUT = 'What went wrong is left out, because it may repeat secret values.'

/**
 * Replaces secret values, and the texts, numbers and names in them, wherever a text about their calls repeats one of
 * them whole.
 */
export function redactText(text: string, hidden: Hidden | undefined): string {
  const forms = formsOf(hidden, text.length)
  if (forms.size * text.length > MAX_SEARCHED) return LEFT_OUT
  const isSecret = new Uint8Array(text.length)
  for (const form of forms) {
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) {
      isSecret.fill(1, at, at + form.length)
    }
  }
  let shown = ''
  for (let at = 0; at < text.length; at++) {
    // Secrets that overlap or touch share a mask.
    if (!isSecret[at]) shown += text[at]
    else if (!isSecret[at - 1]) shown += MASK
  }
  return shown
}

/**
 * Replaces the secrets in what a log or a stack has of an error. Its class, code and reason stay, by which an outage is
 * recognized, and nothing else. Without secrets the error stays the same.
 */
export function redactError(error: unknown, hidden: Hidden | undefined): unknown {
  if (hidden === undefined) return error
  const own = error instanceof Error ? error : new Error(String(error))
  const hiddenFields = ['name', 'message', 'stack', 'code', 'reason'].map((field) => {
    const value: unknown = Reflect.get(own, field)
    return [field, { value: typeof value === 'string' ? redactText(value, hidden) : undefined }]
  })
  // All are defined, even without a value, because getters of the class would not work.
  return Object.create(Object.getPrototypeOf(own), Object.fromEntries(hiddenFields))
}

/** Returns the texts in which a value may be repeated: as they are, in JSON, and in a text in JSON. */
function formsOf(hidden: Hidden | undefined, maxLength: number): Set<string> {
  const forms = new Set<string>()
  const add = (form: string) => {
    if (form.length >= MIN_LENGTH && form.length <= maxLength) forms.add(form)
  }
  // A list of what is left instead of a recursion: a model can nest values deeply.
  const left = Object.values(hidden ?? {})
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(value)) left.push(...(Array.isArray(value) ? [] : [name]), inner)
    }
    if (typeof value === 'number') add(String(value))
    if (typeof value !== 'string' || value.length > maxLength) continue
    const once = escaped(value)
    for (const form of [value, once, escaped(once)]) add(form)
  }
  return forms
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)
