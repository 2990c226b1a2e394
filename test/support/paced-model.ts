import { randomUUID } from 'node:crypto'
import { call, type Target } from './http.ts'
import { chatCompletions, questionOf } from './providers/chat-completions.ts'
import { startProvider } from './providers/scripted-server.ts'
import type { Random } from './random.ts'

const WORDS = 36
const THOUGHTS = 8
const WORD_MS = 40
/** Time for one answer, in ms, on a quiet machine. */
export const ANSWER_MS = (WORDS + THOUGHTS) * WORD_MS

/** Texts of an answer. */
export type Texts = { text: string; thinking: string }

type Answer = { thinking: string[]; text: string[] }

/** Model that answers word by word. Each word is unique in its answer. */
export type PacedModel = {
  /** Adds the model to a service. Returns its id there. */
  addTo(target: Target): Promise<string>
  /** Returns a new question. Each time it is asked, its answer is the same. */
  alike(): string
  /** Returns a new question. Asked again, its answer is like the first one up to a random word, and is shorter. */
  otherwise(random: Random): string
  /** Resolves when the model has begun to answer a question. */
  untilBegun(question: string): Promise<void>
  /** Returns all answers that the model has begun to give to a question. */
  answersTo(question: string): Texts[]
  close(): Promise<void>
}

export async function startPacedModel(): Promise<PacedModel> {
  const plans = new Map<string, (attempt: number) => Answer>()
  const begun = new Map<string, number>()
  const waiting = new Map<string, () => void>()
  const provider = await startProvider(chatCompletions, (request) => {
    const question = questionOf(request)
    const attempt = begun.get(question) ?? 0
    const answer = plans.get(question)?.(attempt)
    if (answer === undefined) return { status: 400, message: `unknown question ${question}` }
    begun.set(question, attempt + 1)
    waiting.get(question)?.()
    return { ...answer, pauseMs: WORD_MS }
  })
  const add = (plan: (attempt: number) => Answer): string => {
    const question = randomUUID()
    plans.set(question, plan)
    return question
  }
  const first = { thinking: words('t', THOUGHTS), text: words('w', WORDS) }
  return {
    addTo: async (target) => {
      const settings = {
        name: 'Paced',
        provider_type: 'openai_completions',
        base_url: provider.baseUrl,
        api_key: 'sk-p',
      }
      const added = await call(target, 'POST', '/v1/llm-providers', settings)
      const path = `/v1/llm-providers/${added.body.id}/models`
      return (await call(target, 'POST', path, { model_id: 'paced', display_name: 'Paced' })).body.id
    },
    alike: () => add(() => first),
    otherwise: (random) => {
      const [thoughts, same] = [Math.floor(random() * THOUGHTS), Math.floor((random() * WORDS) / 2)]
      return add((attempt) => {
        if (attempt === 0) return first
        return {
          thinking: [...first.thinking.slice(0, thoughts), ...words(`t-${attempt}-`, THOUGHTS - thoughts)],
          text: [...first.text.slice(0, same), ...words(`w-${attempt}-`, Math.floor((WORDS - same) / 2))],
        }
      })
    },
    untilBegun: (question) =>
      new Promise((resolve) => {
        waiting.set(question, resolve)
        if (begun.has(question)) resolve()
      }),
    answersTo: (question) =>
      Array.from({ length: begun.get(question) ?? 0 }, (_, attempt) => plans.get(question)?.(attempt))
        .filter((answer) => answer !== undefined)
        .map(({ text, thinking }) => ({ text: text.join(''), thinking: thinking.join('') })),
    close: provider.close,
  }
}

const words = (name: string, count: number): string[] => Array.from({ length: count }, (_, index) => `${name}${index} `)
