import { decodeSigns } from './decode-signs.ts'
import { type Hidden, MASK } from './redact-call.ts'

/** Minimum length of a redacted text. A shorter one would occur in unrelated words. */
const MIN_LENGTH = 3
/** Maximum number of searched characters, counted once per secret: about a tenth of a second. */
const MAX_SEARCHED = 200_000_000
const LEFT_OUT = 'What went wrong is left out, because it may repeat secret values.'

/**
 * Replaces secret values, and the texts, numbers and names in them, wherever a text about their calls repeats them
 * whole, also with signs written as in pages, JSON and addresses.
 */
export function redactText(text: string, hidden: Hidden | undefined): string {
  const forms = formsOf(hidden, text.length)
  if (forms.size === 0) return text
  // Twice, because the decoded text is searched, too.
  if (2 * forms.size * text.length > MAX_SEARCHED) return LEFT_OUT
  const decoded = decodeSigns(text)
  if (decoded === 'too_many') return LEFT_OUT
  const isSecret = new Uint8Array(text.length)
  for (const form of forms) {
    for (const at of placesOf(form, text)) isSecret.fill(1, at, at + form.length)
    if (decoded === undefined) continue
    for (const at of placesOf(form, decoded.text)) isSecret.fill(1, decoded.place(at), decoded.place(at + form.length))
  }
  return masked(text, isSecret)
}

/** Replaces the marked parts of a text. Secrets that overlap or touch share a mask. */
function masked(text: string, isSecret: Uint8Array): string {
  const shown: string[] = []
  let at = 0
  for (let from = isSecret.indexOf(1); from >= 0; from = isSecret.indexOf(1, at)) {
    shown.push(text.slice(at, from), MASK)
    const end = isSecret.indexOf(0, from)
    at = end < 0 ? text.length : end
  }
  return shown.join('') + text.slice(at)
}

function* placesOf(form: string, text: string): Generator<number> {
  for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) yield at
}

/**
 * Replaces the secrets in the texts of an error that logs and stacks show. Keeps its class, and of its fields
 * the name, message and stack, and the code and reason that identify an outage, each redacted. Without secrets the error
 * stays the same.
 */
export function redactError(error: unknown, hidden: Hidden | undefined): unknown {
  if (hidden === undefined) return error
  const own = error instanceof Error ? error : new Error(String(error))
  const redactedFields = ['name', 'message', 'stack', 'code', 'reason'].map((field) => {
    const value: unknown = Reflect.get(own, field)
    return [field, { value: typeof value === 'string' ? redactText(value, hidden) : undefined }]
  })
  // Defines all, even without a value, because getters of the class would not work.
  return Object.create(Object.getPrototypeOf(own), Object.fromEntries(redactedFields))
}

/** Returns the forms in which a value may be repeated: unchanged, in JSON, and in a text in JSON. */
function formsOf(hidden: Hidden | undefined, maxLength: number): Set<string> {
  const forms = new Set<string>()
  const add = (form: string) => {
    if (form.length >= MIN_LENGTH && form.length <= maxLength) forms.add(form)
  }
  // A work list instead of recursion, because a model can nest values deeply.
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
