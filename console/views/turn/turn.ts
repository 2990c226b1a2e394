import type { Event } from 'agent-session-client'
import { useEvery, useLoad } from '../../load.ts'
import { durationOf } from '../../parts/duration.ts'
import { Problem, Reconnecting } from '../../parts/page.ts'
import { plain } from '../../parts/plain.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { link, route } from '../../router.ts'
import { abortWhenHidden, untilSeen } from '../../seen.ts'
import { api, serviceNow, sessionOf } from '../../service.ts'
import { html, useEffect, useMemo, useState, type VNode } from '../../ui.ts'
import { Details, StructuredOutput } from './details.ts'
import { costs, TurnHead } from './facts.ts'
import { rowsOf } from './rows.ts'
import { type Span, type SpanKind, spansOf, withTakeovers } from './spans.ts'
import { Hatch, Losses, Track } from './track.ts'

/** Interval between updates of the time while the turn runs. */
const TICK_MS = 250
/** Interval between reads of a running turn's tokens. */
const LOOK_MS = 2000
/** Interval within which events are drawn together. */
const DRAW_MS = 200
const DELTAS: Event['type'][] = ['output.message.delta', 'reason.thinking.delta']

type Props = { sessionId: string; turnId: string }

/** Timeline of a turn at `#/sessions/<id>/turns/<turn id>`, and a span of it at `?span=<key>`. */
export function TurnView({ sessionId, turnId }: Props): VNode {
  const { spans: folded, error, isOver, isConnected } = useSpans(sessionId, turnId)
  const {
    value: turn,
    error: missing,
    refresh,
  } = useLoad(() => api.turns.get({ session_id: sessionId, turn_id: turnId }), [turnId, isOver])
  const spans = useMemo(() => withTakeovers(folded, turn?.takeovers ?? []), [folded, turn])
  useEvery(LOOK_MS, () => isOver || refresh())
  const now = useNow(!isOver)
  const shown = route.value.query.get('span')
  const rows = useMemo(() => rowsOf(spans), [spans])
  const chosen = rows.find(({ keys }) => keys.includes(shown ?? ''))?.span
  const from = Math.min(...spans.map((span) => span.from))
  const until = Math.max(from + 1, ...spans.map(({ to }) => to ?? now))
  return html`<section class="timeline">
    <${TurnHead} turn=${turn} spans=${spans} now=${now} />
    <${Problem} error=${missing ?? error} />
    <${Reconnecting} isShown=${!isConnected} />
    ${spans.length === 0 && missing === undefined && html`<${Skeleton} />`}
    ${
      spans.length > 0 &&
      html`<${Hatch} /><${Legend} hasLosses=${spans.some(({ losses }) => losses.length > 0)} />
      <${Axis} ms=${until - from} />
      <ol class="spans" aria-label="Spans of the turn">${rows.map(
        ({ span, keys }) =>
          html`<${Bar} key=${keys.at(-1)} href=${at(sessionId, turnId, span.key)} span=${span} from=${from} until=${until}
          now=${now} isChosen=${span === chosen} />`,
      )}</ol>`
    }
    ${chosen === undefined && html`<${StructuredOutput} turn=${turn} />`}
    ${chosen && html`<${Details} key=${chosen.key} sessionId=${sessionId} span=${chosen} spans=${spans} turn=${turn} now=${now} />`}
  </section>`
}

const at = (sessionId: string, turnId: string, key: string): string =>
  `${link('sessions', sessionId, 'turns', turnId)}?${new URLSearchParams({ span: key })}`

type Followed = { spans: Span[]; error: unknown; isOver: boolean; isConnected: boolean }
const NOTHING: Followed = { spans: [], error: undefined, isOver: false, isConnected: true }

/** Reads and follows the events of a turn up to its end. */
function useSpans(sessionId: string, turnId: string): Followed {
  const [state, setState] = useState<Followed>(NOTHING)
  useEffect(() => {
    const closed = new AbortController()
    const events: Event[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const draw = () => {
      timer = undefined
      setState((before) => ({ ...before, spans: spansOf(events) }))
    }
    const read = async () => {
      const onConnected = (isConnected: boolean) => setState((before) => ({ ...before, isConnected }))
      const query = { turn_id: turnId, exclude: DELTAS, onConnected }
      for (;;) {
        const { signal } = abortWhenHidden(closed.signal)
        for await (const event of sessionOf(sessionId).events({ ...query, after: events.at(-1)?.id, signal })) {
          events.push(withoutMessages(event))
          timer ??= setTimeout(draw, DRAW_MS)
        }
        if (closed.signal.aborted) return
        if (!signal.aborted) return end()
        await untilSeen(closed.signal)
      }
    }
    const end = (error?: unknown) => setState({ ...NOTHING, spans: spansOf(events), error, isOver: true })
    read().catch((error: unknown) => closed.signal.aborted || end(error))
    return () => {
      closed.abort()
      clearTimeout(timer)
    }
  }, [sessionId, turnId])
  return state
}

/** Drops the messages of a model call, which are the whole conversation. They are read again on request. */
function withoutMessages(event: Event): Event {
  if (event.type !== 'llm.generation') return event
  return { ...event, data: { ...event.data, messages: [] } }
}

/** Returns the current time, updated while it matters. */
function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(serviceNow())
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => setNow(serviceNow()), TICK_MS)
    return () => clearInterval(timer)
  }, [isRunning])
  return now
}

function Axis({ ms }: { ms: number }): VNode {
  return html`<div class="axis quiet" aria-hidden="true"><span>0</span><span>${durationOf(ms / 2)}</span><span>${durationOf(ms)}</span></div>`
}

const KINDS: Partial<Record<SpanKind, string>> = { model: 'Model', tool: 'Tool', waiting: 'Waiting for a person' }

/** Legend of the colours. */
function Legend({ hasLosses }: { hasLosses: boolean }): VNode {
  return html`<ul class="legend quiet" aria-hidden="true">${Object.entries(KINDS).map(
    ([kind, title]) =>
      html`<li key=${kind}><svg class=${`bar kind-${kind}`} width="12" height="12"><rect width="12" height="12" rx="2" /></svg> ${title}</li>`,
  )}
    <li><svg class="bar bad" width="12" height="12"><rect width="12" height="12" rx="2" /></svg> Failed</li>
    ${hasLosses && html`<li><svg class="bar" width="12" height="12"><rect width="12" height="12" rx="2" /><rect width="12" height="12" fill="url(#hatch)" /></svg> Lost attempt</li>`}</ul>`
}

type BarProps = { href: string; span: Span; from: number; until: number; now: number; isChosen: boolean }

function Bar({ href, span, from, until, now, isChosen }: BarProps): VNode {
  const { title, tool, depth, problem, outcome } = span
  const to = span.to ?? Math.max(now, span.from)
  const facts = [
    span.to === undefined ? `${durationOf(to - span.from)} so far` : durationOf(to - span.from),
    ...costs(span),
  ]
  return html`<li><a href=${href} class=${`span depth-${depth}`} aria-current=${isChosen ? 'true' : undefined}>
    <span class="name" title=${tool && plain(tool)} dir="auto">${title}</span>
    <span class=${problem === undefined ? 'facts quiet' : 'facts problem'}>${facts.join(' · ')}${problem !== undefined && `, ${outcome ?? (span.isCancelled ? 'cancelled' : 'failed')}`}</span>
    <${Track} span=${span} from=${from} until=${until} now=${now} />
    <${Losses} losses=${span.losses} />
  </a></li>`
}
