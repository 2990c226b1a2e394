import type { Field } from '../../parts/form.ts'
import type { Call } from './conversation.ts'

/** Call that waits for a person. `asker` is the tool that asks a question, as people read it. */
export type Asked = Pick<Call, 'id' | 'name' | 'arguments' | 'kind' | 'asker'> & { title?: string | undefined }

/** Sends the result of a call that waits. */
export type Submit = (result: { result?: unknown; error?: string }) => Promise<void>

/** Call to answer. The element with its question has the `id`. */
export type Asking = { id: string; call: Asked; submit: Submit }

/** Names of arguments that hold a question. The first one counts. */
const QUESTIONS = ['question', 'message', 'prompt', 'title', 'description']
const MAX_CHARACTERS = 4000
const MAX_OPTIONS = 100
const MAX_OPTION_CHARACTERS = 500

/** Question that the arguments of a client's tool hold. `others` are the arguments that are no part of it. */
export function questionIn(given: Record<string, unknown>) {
  const others = { ...given }
  const take = (names: string[]): string | undefined => {
    const name = names.find((one) => typeof given[one] === 'string' && given[one].length <= MAX_CHARACTERS)
    if (name !== undefined) delete others[name]
    return name && String(given[name])
  }
  const text = take(QUESTIONS)
  const about = text && take(['description'].filter((name) => name in others))
  const name = ['choices', 'options'].find((one) => one in given) ?? ''
  const options = optionsOf(given[name])
  if (options.length > 0) delete others[name]
  return { text, about, options, others }
}

/** Returns options that are texts, or objects that name them. */
function optionsOf(given: unknown): NonNullable<Field['options']> {
  if (!Array.isArray(given) || given.length > MAX_OPTIONS) return []
  const options = given.map((one) => {
    const { label = one, value = label } = Object(one)
    return { value, label }
  })
  const isFit = options.every(
    ({ value, label }) =>
      typeof value === 'string' && typeof label === 'string' && label.length <= MAX_OPTION_CHARACTERS,
  )
  return isFit ? [...new Map(options.map((one) => [one.value, one])).values()] : []
}
