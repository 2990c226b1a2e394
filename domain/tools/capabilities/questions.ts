import type { QuestionAnswer } from '../../../contract/turns.ts'

/** Question of a tool to the user. `schema` describes the answer's content. With `url`, the user answers there. */
export type Question = { key: string; message: string } & ({ schema: Record<string, unknown> } | { url: string })

/** Answers to the questions of one run, by their keys, and the `state` that came with the questions. */
export type Answers = { answers: Record<string, QuestionAnswer>; state?: string | undefined }

/**
 * Thrown by a tool that needs an answer of the user. The client is asked, and the call is run again with the answers in
 * `ToolContext.answers`.
 */
export class InputRequired extends Error {
  override name = 'InputRequired'
  readonly questions: Question[]
  /** Returned with the answers, and shown to no one else. */
  readonly state: string | undefined
  constructor(questions: Question[], state?: string) {
    super('the tool asks its user')
    this.questions = questions
    this.state = state
  }
}
