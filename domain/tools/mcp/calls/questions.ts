import type { ElicitRequest } from '@modelcontextprotocol/client'
import { isRecord } from '../../../../lib/is-record.ts'
import { storableText } from '../../../../lib/postgres-text.ts'
import type { Question } from '../../capabilities/questions.ts'
import type { RedactCredentials } from '../protocol/credentials.ts'
import { LimitError } from '../protocol/failure.ts'
import { boundedJson } from '../protocol/json-size.ts'
import { MAX_MESSAGE_BYTES, MAX_QUESTIONS, MAX_SCHEMA_BYTES, MAX_STATE_BYTES } from '../protocol/limits.ts'
import { cutToBytes, toLine } from '../protocol/text.ts'

const MAX_KEY_LENGTH = 255
const MAX_URL_LENGTH = 2048
const MAX_DEPTH = 16

/** Reads the questions of an `input_required` result. Throws `LimitError` for a question that cannot be asked. */
export function toQuestions(requests: unknown, redact: RedactCredentials): Question[] {
  const entries = Object.entries(isRecord(requests) ? requests : {})
  if (entries.length === 0) throw new LimitError('asks a question, and does not say which.')
  if (entries.length > MAX_QUESTIONS) throw new LimitError(`asks more than ${MAX_QUESTIONS} questions at once.`)
  return entries.map(([key, request]) => {
    const { method, params } = isRecord(request) ? request : {}
    if (method !== 'elicitation/create') {
      const what = typeof method === 'string' ? toLine(redact(method)) : 'something unknown'
      throw new LimitError(`asks for ${what}, which is not offered to servers.`)
    }
    checkKey(key, redact)
    return toQuestion(key, params, redact)
  })
}

/** Refuses a key that could not be stored and returned unchanged. */
function checkKey(key: string, redact: RedactCredentials): void {
  if (key.length > MAX_KEY_LENGTH) throw new LimitError('asks a question with a key that is too long.')
  if (key === '__proto__' || key !== storableText(key) || key !== redact(key)) {
    throw new LimitError('asks a question with a key that cannot be used.')
  }
}

/** Reads one question: a form to fill in, or an address to visit. Throws `LimitError` if it cannot be asked. */
export function toQuestion(
  key: string,
  params: ElicitRequest['params'] | unknown,
  redact: RedactCredentials,
): Question {
  const { message, mode, url, requestedSchema } = redact(isRecord(params) ? params : {})
  if (typeof message !== 'string') throw new LimitError('asks a question without a message.')
  const text = cutToBytes(message.replaceAll('\0', '').toWellFormed(), MAX_MESSAGE_BYTES)
  if (mode === 'url') return { key, message: text, url: checkUrl(url) }
  if (mode !== undefined && mode !== 'form') throw new LimitError('asks a question of an unknown kind.')
  const bounds = { maxBytes: MAX_SCHEMA_BYTES, maxDepth: MAX_DEPTH }
  if (!isRecord(requestedSchema) || boundedJson(requestedSchema, bounds) === undefined) {
    throw new LimitError(`asks a question whose schema is missing or larger than ${MAX_SCHEMA_BYTES / 1024} KiB.`)
  }
  return { key, message: text, schema: requestedSchema }
}

function checkUrl(value: unknown): string {
  const url = typeof value === 'string' && value.length <= MAX_URL_LENGTH ? URL.parse(value) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new LimitError('sends the user to an address that is not an http or https URL.')
  }
  return url.href
}

/** Returns a state of the server. Throws `LimitError` if it could not be stored and returned unchanged. */
export function checkState(state: unknown, redact: RedactCredentials): string | undefined {
  if (state === undefined) return undefined
  if (typeof state !== 'string' || state !== storableText(state) || state !== redact(state)) {
    throw new LimitError('asks questions with a state that cannot be used.')
  }
  if (Buffer.byteLength(state) > MAX_STATE_BYTES) {
    throw new LimitError(`asks questions with a state of more than ${MAX_STATE_BYTES / 1024} KiB.`)
  }
  return state
}
