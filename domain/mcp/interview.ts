import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'
import type { Answers, Question } from '../capabilities/questions.ts'
import { toQuestion } from './questions.ts'

/** Key of the one question that a run asks in a session of the protocol. */
const KEY = 'question'

/** Questions that a tool asks during its run, as the sessions of before 2026-07-28 have them. */
export type Interview = {
  /**
   * Answers from those of earlier runs, in their order. The first question beyond them is kept for the user, and for now
   * it is cancelled like all after it.
   */
  elicit(params: ElicitRequest['params']): ElicitResult
  /** Resolves to the question for the user. Rejects with `LimitError` when it cannot be asked. */
  asked: Promise<Question>
}

export function createInterview(answers: Answers[]): Interview {
  const { promise: asked, resolve, reject } = Promise.withResolvers<Question>()
  // Nobody may wait for it.
  asked.catch(() => {})
  let given = 0
  return {
    asked,
    elicit(params) {
      const answer = Object.values(answers[given]?.answers ?? {})[0]
      if (answer !== undefined) {
        given++
        return answer as ElicitResult
      }
      try {
        resolve(toQuestion(KEY, params))
      } catch (error) {
        reject(error)
      }
      return { action: 'cancel' }
    },
  }
}
