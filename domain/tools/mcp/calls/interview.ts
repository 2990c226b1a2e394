import { createHash } from 'node:crypto'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'
import { isRecord } from '../../../../lib/is-record.ts'
import type { Answers, Question } from '../../capabilities/questions.ts'
import type { RedactCredentials } from '../protocol/credentials.ts'
import { toQuestion } from './questions.ts'

/** Key of the one question that a run asks in a session of the protocol. */
const KEY = 'question'

/** Questions that a tool asks during its run, as in sessions of protocol versions before 2026-07-28. */
export type Interview = {
  /**
   * Returns the next answer that earlier runs have for the very same question. The first question without an answer is
   * kept for the user; it and all later ones are cancelled for now.
   */
  elicit(params: ElicitRequest['params']): ElicitResult
  /** Resolves to the question for the user. Rejects with `LimitError` when it cannot be asked. */
  asked: Promise<Question>
}

export function createInterview(answers: Answers[], redact: RedactCredentials): Interview {
  const { promise: asked, resolve, reject } = Promise.withResolvers<Question>()
  // Nobody may wait for it.
  asked.catch(() => {})
  let given = 0
  let isOver = false
  const answerTo = (question: Question): ElicitResult | undefined => {
    const state = stateOf(question)
    const at = answers.findIndex((one, index) => index >= given && one.state === state)
    if (at === -1) return undefined
    // Skipped answers are from runs that asked other questions.
    given = at + 1
    return answers[at]?.answers[KEY] as ElicitResult | undefined
  }
  return {
    asked,
    elicit(params) {
      if (isOver) return { action: 'cancel' }
      try {
        const question = toQuestion(KEY, params, redact)
        const answer = answerTo(question)
        if (answer !== undefined) return answer
        resolve(question)
      } catch (error) {
        reject(error)
      }
      isOver = true
      return { action: 'cancel' }
    },
  }
}

/** Returns a digest of everything that the user is shown. It identifies a question when the tool asks again. */
export function stateOf(question: Question): string {
  return createHash('sha256')
    .update(JSON.stringify(sorted(question)))
    .digest('hex')
}

/** Copies a value of JSON with the keys of its objects in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isRecord(value)) return value
  const keys = Object.keys(value).sort()
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]))
}
