import { bySequence } from '../session/conversation.ts'
import type { Span } from './spans.ts'

/** Row of the timeline. `keys` are the keys of the spans that it stands for: links contain any of them. */
export type Row = { span: Span; keys: string[] }

/** Returns the rows of a timeline: a model call of one attempt is one row, because both spans say the same. */
export function rowsOf(spans: Span[]): Row[] {
  const attempts = Map.groupBy(
    spans.filter(({ kind }) => kind === 'model'),
    ({ key }) => stepOf(key),
  )
  const keys = new Set(spans.map(({ key }) => key))
  return spans.flatMap((span) => {
    const [only, ...others] = attempts.get(stepOf(span.key)) ?? []
    const isAlone = only !== undefined && others.length === 0
    if (span.kind === 'model' && isAlone && keys.has(stepOf(span.key))) return []
    if (span.kind !== 'reason' || !isAlone) return [{ span, keys: [span.key] }]
    return [{ span: together(span, only), keys: [only.key, span.key] }]
  })
}

/** Returns the key of a span's step, with which the keys of its attempts and calls begin. */
export const stepOf = (key: string): string => key.split(/[.-]/)[0] ?? ''

const together = (step: Span, attempt: Span): Span => ({
  ...attempt,
  title: step.title,
  depth: step.depth,
  from: Math.min(step.from, attempt.from),
  to: step.to,
  problem: attempt.problem ?? step.problem,
  events: [...step.events, ...attempt.events].sort(bySequence),
})
