import type { Turn } from 'agent-session-client'
import { useAgentNames } from '../../parts/agent-select.ts'
import { Badge } from '../../parts/badge.ts'
import { costOf } from '../../parts/cost.ts'
import { durationOf } from '../../parts/duration.ts'
import { link } from '../../router.ts'
import { workflowAddress } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import type { Span } from './spans.ts'

/** Tokens and cost, if they are known. */
export const costs = ({ tokens, costUsd }: Pick<Span, 'tokens' | 'costUsd'>): string[] => [
  ...(tokens === undefined ? [] : [`${tokens.toLocaleString()} tokens`]),
  ...(costUsd ? [costOf(costUsd)] : []),
]

/** Point in time to the millisecond. */
export const exactTime = (ts: string | number): string =>
  new Date(ts).toLocaleTimeString(undefined, { hourCycle: 'h23', fractionalSecondDigits: 3, ...CLOCK })
const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const

/** Numbers by their names. Unknown ones are left out. */
export const Metrics = ({ metrics }: { metrics: Record<string, string | undefined> }): VNode =>
  html`<dl class="metrics">${Object.entries(metrics).map(
    ([name, value]) => value !== undefined && html`<div key=${name}><dt>${name}</dt><dd dir="auto">${value}</dd></div>`,
  )}</dl>`

type Props = { turn: Turn | undefined; spans: Span[]; now: number }

/** Head of a timeline: the state of the turn, and its facts. */
export function TurnHead({ turn, spans, now }: Props): VNode {
  const nameOf = useAgentNames([turn?.agent_id])
  const temporal = turn && workflowAddress(turn.id)
  const facts = turn === undefined ? [] : factsOf(turn, spans, now)
  const { parent, children } = turn ?? {}
  return html`<header class="turn-head">
    <div class="head-row">
      <div class="head-title"><h2>Timeline of a turn</h2>${turn && html`<${Badge} status=${turn.stalled ? 'stalled' : turn.status} />`}</div>
      ${temporal && html`<a href=${temporal} target="_blank" rel="noopener noreferrer">Open in Temporal</a>`}
    </div>
    <ul class="facts-strip">
      ${facts.map((fact) => html`<li key=${fact} dir="auto">${fact}</li>`)}
      ${
        turn?.agent_id &&
        html`<li><a href=${link('agents', turn.agent_id)} dir="auto">${nameOf(turn.agent_id) || 'Agent'}</a>${turn.agent_version && ` version ${turn.agent_version}`}</li>`
      }
      ${parent && html`<li><a href=${link('sessions', parent.session_id, 'turns', parent.turn_id)}>Asked by another agent</a></li>`}
      ${children && html`<li>${children.turns} ${children.turns === 1 ? 'turn' : 'turns'} of asked agents ${costOf(children.cost_usd)}</li>`}
    </ul>
  </header>`
}

/** Returns the duration, the tokens, the cost and the models of a turn. */
function factsOf({ usage, cost_usd, created_at, finished_at }: Turn, spans: Span[], now: number): string[] {
  const until = finished_at ? Date.parse(finished_at) : now
  const duration = durationOf(Math.max(0, until - Date.parse(created_at)))
  const models = spans.filter(({ kind }) => kind === 'reason').map(({ title }) => title)
  return [
    finished_at ? duration : `${duration} so far`,
    ...costs({ tokens: usage.input_tokens + usage.output_tokens, costUsd: cost_usd ?? undefined }),
    ...new Set(models),
  ]
}
