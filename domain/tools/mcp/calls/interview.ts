import { createHash } from 'node:crypto'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'
import { isRecord } from '../../../../lib/is-record.ts'
import type { Answers, Question } from '../../capabilities/questions.ts'
import type { RedactCredentials } from '../protocol/credentials.ts'
import { toQuestion } from './questions.ts'

/** Key of a run's single question in a session of the protocol. */
const KEY = 'question'

/** Questions that a tool asks during its run, as in sessions of protocol versions before 2026-07-28. */
export type Interview = {
  /**
   * Returns the next answer of earlier runs to exactly this question. Keeps the first unanswered question for the user,
   * and cancels it and all later ones for now.
   */
  elicit(params: ElicitRequest['params']): ElicitResult
  /** Resolves to the question for the user. Rejects with `LimitError` if it cannot be asked. */
  asked: Promise<Question>
}

export function createInterview(answers: Answers[], redact: RedactCredentials): Interview {
  const { promise: asked, resolve, reject } = Promise.withResolvers<Question>()
  // Handled here, in case nobody waits for it.
  asked.catch(() => {})
  let given = 0
  let isOver = false
  const answerTo = (question: Question): ElicitResult | undefined => {
    const state = stateOf(question)
    const at = answers.findIndex((one, index) => index >= given && one.state === state)
    if (at === -1) return undefined
    // Skipped answers belong to runs that asked other questions.
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

/** Returns a digest of the visible question, which identifies it when the tool asks again. */
export function stateOf(question: Question): string {
  return createHash('sha256')
    .update(JSON.stringify(sorted(question)))
    .digest('hex')
}

/** Copies a JSON value with sorted keys. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isRecord(value)) return value
  const keys = Object.keys(value).sort()
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]))
}
