import type { ContentPart, Event, Takeover } from 'agent-session-client'
import { exitCodeOf } from '../../parts/call/results.ts'
import { QUESTION, textOf } from '../session/conversation.ts'

export type SpanKind = 'turn' | 'queue' | 'reason' | 'model' | 'act' | 'tool' | 'waiting'

/** Period of a turn's work, or of waiting. */
export type Span = {
  /** Stable, because links contain it. */
  key: string
  kind: SpanKind
  title: string
  /** Name of a tool as models call it. */
  tool?: string
  /** Number of enclosing spans. */
  depth: number
  /** Milliseconds since the epoch. */
  from: number
  /** Undefined while the span lasts. */
  to: number | undefined
  /** Error or outcome. */
  problem: string | undefined
  /** A problem in a word or two. */
  outcome?: string
  isCancelled: boolean
  tokens: number | undefined
  /** USD, as a decimal string. */
  costUsd: string | undefined
  /** Its attempts that were lost, one after the other. */
  losses: Loss[]
  events: Event[]
}

/** Attempt that was lost: it ran from `from` to `to`, and another one went on at `until`. */
export type Loss = { from: number; to: number; until: number; takeover: Takeover }

type Opening = Pick<Span, 'key' | 'kind' | 'title' | 'tool' | 'depth'>

/**
 * Folds the events of one turn into spans, in the order in which they begin, each below its enclosing span. Deltas are
 * not needed. Events may be missing at either end.
 */
export function spansOf(events: Iterable<Event>): Span[] {
  const spans = new Map<string, Span>()
  const attempts = new Map<string, number>()
  /** Rounds of the calls by their spans, which enclose the tools' questions. */
  const rounds = new Map<string, string>()
  /** Names of tools as people read them. */
  const titles = new Map([[QUESTION, 'Question']])
  const open = (event: Event, opening: Opening): Span => {
    const known = spans.get(opening.key)
    if (known !== undefined) return known
    const span = newSpan(opening, Date.parse(event.ts))
    spans.set(span.key, span)
    return span
  }
  const close = (event: Event, span: Span | undefined, changes: Partial<Span> = {}): void => {
    if (span === undefined) return
    if (span.to === undefined) span.to = Math.max(Date.parse(event.ts), span.from)
    Object.assign(span, changes)
  }
  const turnOf = (event: Event): Span => open(event, { key: 'turn', kind: 'turn', title: 'Turn', depth: 0 })
  const stepOf = (event: Event, kind: 'reason' | 'act', title: string): Span =>
    open(event, { key: `${event.context.span_id}`, kind, title, depth: 1 })
  /** Returns the span of a model call: the current attempt of a step, or a new one. */
  const attemptOf = (event: Event, step: string, isNew = false): Span => {
    const count = (attempts.get(step) ?? 0) + (isNew || !attempts.has(step) ? 1 : 0)
    attempts.set(step, count)
    return open(event, {
      key: `${step}.${count}`,
      kind: 'model',
      title: count === 1 ? 'Model call' : `Attempt ${count}`,
      depth: 2,
    })
  }
  /** Returns a unique key of a call: the model may reuse an id in a later round. */
  const callKey = (round: string | null | undefined, id: string, isWaiting = false): string =>
    `${round}-${id}${isWaiting ? '-waiting' : ''}`

  const take = (event: Event): void => {
    const turn = turnOf(event)
    const { span_id, parent_span_id } = event.context
    const put = (span: Span | undefined) => (span ?? turn).events.push(event)
    switch (event.type) {
      case 'input.message':
        if (event.context.turn_id) put(turn)
        else put(open(event, { key: 'queue', kind: 'queue', title: 'Queue', depth: 1 }))
        return
      case 'turn.started':
        close(event, spans.get('queue'))
        put(turn)
        return
      case 'reason.started': {
        put(stepOf(event, 'reason', event.data.metadata?.model ?? 'Reasoning'))
        return
      }
      case 'output.message.started': {
        const step = stepOf(event, 'reason', 'Reasoning')
        // The previous attempt ends here, unless it has already ended.
        close(event, spans.get(`${step.key}.${attempts.get(step.key)}`))
        put(attemptOf(event, step.key, true))
        return
      }
      case 'reason.retrying': {
        const attempt = attemptOf(event, stepOf(event, 'reason', 'Reasoning').key)
        close(event, attempt, { problem: event.data.error })
        put(attempt)
        return
      }
      case 'output.message.completed':
      case 'reason.thinking.started':
      case 'reason.thinking.completed': {
        const attempt = attemptOf(event, stepOf(event, 'reason', 'Reasoning').key)
        if (event.type === 'output.message.completed') close(event, attempt)
        put(attempt)
        return
      }
      case 'llm.generation': {
        const { metadata } = event.data
        const attempt = attemptOf(event, `${parent_span_id}`)
        attempt.tokens = tokensOf(metadata.usage)
        attempt.costUsd = metadata.cost_usd ?? undefined
        put(attempt)
        return
      }
      case 'reason.completed': {
        const step = stepOf(event, 'reason', 'Reasoning')
        const attempt = attemptOf(event, step.key)
        const { usage, error } = event.data
        close(event, attempt, error ? { problem: error } : {})
        close(event, step, { tokens: tokensOf(usage), costUsd: attempt.costUsd, ...(error && { problem: error }) })
        put(step)
        return
      }
      case 'act.started':
        for (const { name, display_name } of event.data.tool_calls ?? []) titles.set(name, display_name ?? name)
        put(stepOf(event, 'act', 'Tools'))
        return
      case 'act.completed':
        put(stepOf(event, 'act', 'Tools'))
        close(event, spans.get(`${span_id}`))
        return
      case 'tool.call_requested': {
        const round = rounds.get(`${parent_span_id}`) ?? stepOf(event, 'act', 'Tools').key
        for (const { id, name, kind } of event.data.tool_calls) {
          const shown = titles.get(name) ?? name
          const title = name === QUESTION ? shown : `${shown}: ${kind === 'approval' ? 'approval' : 'answer'}`
          put(open(event, { key: callKey(round, id, true), kind: 'waiting', title, tool: name, depth: 2 }))
        }
        return
      }
      case 'tool.started': {
        const { id, name } = event.data.tool_call
        close(event, spans.get(callKey(parent_span_id, id, true)))
        rounds.set(`${span_id}`, `${parent_span_id}`)
        const title = event.data.display_name ?? titles.get(name) ?? name
        put(open(event, { key: callKey(parent_span_id, id), kind: 'tool', title, tool: name, depth: 2 }))
        return
      }
      case 'tool.completed': {
        const { tool_call_id, tool_name, display_name, status, result, error } = event.data
        const waiting = spans.get(callKey(parent_span_id, tool_call_id, true))
        const running = spans.get(callKey(parent_span_id, tool_call_id))
        const title = display_name ?? tool_name
        const key = callKey(parent_span_id, tool_call_id)
        const span = running ?? waiting ?? open(event, { key, kind: 'tool', title, tool: tool_name, depth: 2 })
        close(event, waiting)
        const isCancelled = status === 'cancelled'
        close(event, span, status === 'success' ? exitOf(result) : { problem: error ?? status, isCancelled })
        put(span)
        return
      }
      case 'turn.completed':
      case 'turn.failed':
      case 'turn.cancelled': {
        for (const span of spans.values()) close(event, span)
        if (event.type === 'turn.failed') turn.problem = event.data.error
        else turn.tokens = tokensOf(event.data.usage)
        if (event.type === 'turn.completed') turn.costUsd = event.data.cost_usd ?? undefined
        if (event.type === 'turn.cancelled')
          Object.assign(turn, { problem: event.data.reason ?? 'cancelled', isCancelled: true })
        put(turn)
        return
      }
      default:
        put(undefined)
    }
  }
  for (const event of events) take(event)
  return inOrder([...spans.values()])
}

const newSpan = (opening: Opening, from: number): Span => ({
  ...opening,
  ...{ from, to: undefined, problem: undefined, isCancelled: false, tokens: undefined, costUsd: undefined },
  ...{ losses: [], events: [] },
})

/** Returns a turn's spans with its lost attempts. No event tells of these. */
export function withTakeovers(spans: Span[], takeovers: Takeover[]): Span[] {
  if (takeovers.length === 0) return spans
  return inOrder(takeovers.reduce(withTakeover, spans))
}

function withTakeover(spans: Span[], takeover: Takeover): Span[] {
  const { span_id, begun_at, lost_at, tool_call_id } = takeover
  const until = Date.parse(takeover.taken_over_at)
  const changed = (span: Span, from: number): Span => {
    const to = Math.max(Date.parse(lost_at), from)
    return { ...span, losses: [...span.losses, { from, to, until, takeover }] }
  }
  if (tool_call_id) {
    const isOwn = (event: Event) => event.context.span_id === span_id
    return spans.map((span) =>
      span.kind === 'tool' && span.events.some(isOwn) ? changed(span, span.losses.at(-1)?.until ?? span.from) : span,
    )
  }
  if (!spans.some(({ key }) => key === span_id)) return spans
  const known = spans.findLast(
    ({ key, from, losses }) => key.startsWith(`${span_id}.`) && from < until && losses.length === 0,
  )
  const from = known?.from ?? Date.parse(begun_at ?? lost_at)
  // An attempt may be lost before its first event.
  const early: Opening = { key: `${span_id}.lost-${from}`, kind: 'model', title: 'Lost attempt', depth: 2 }
  const attempt = changed(known ?? newSpan(early, from), from)
  attempt.to = attempt.losses[0]?.to
  const others = spans.map((span) =>
    span === known ? attempt : span.key === span_id ? { ...span, from: Math.min(span.from, from) } : span,
  )
  return known ? others : [...others, attempt]
}

const tokensOf = (usage: { input_tokens: number; output_tokens: number } | null | undefined): number | undefined =>
  usage ? usage.input_tokens + usage.output_tokens : undefined

/** A command that exits with an error is a problem, although its tool has done its work. */
function exitOf(result: ContentPart[] | null | undefined): Partial<Span> {
  const code = exitCodeOf(textOf(result ?? []))
  return code === undefined || code === 0 ? {} : { problem: `Exit code ${code}.`, outcome: `exit ${code}` }
}

/** Places attempts and calls below their step, whose key begins theirs. Spans without a step come last. */
function inOrder(spans: Span[]): Span[] {
  const inner = Map.groupBy(
    spans.filter(({ depth }) => depth === 2),
    ({ key }) => key.split(/[.-]/)[0] ?? '',
  )
  const innerOf = ({ key }: Span) => (inner.get(key) ?? []).toSorted((a, b) => a.from - b.from)
  const ordered = spans.filter(({ depth }) => depth < 2).flatMap((span) => [span, ...innerOf(span)])
  return [...new Set([...ordered, ...spans])]
}
