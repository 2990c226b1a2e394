import type { Event, Turn } from 'agent-session-client'
import { useEvery, useLoad } from '../../load.ts'
import { durationOf } from '../../parts/duration.ts'
import { LongText } from '../../parts/long-text.ts'
import { ActionButton, Problem, Quiet, Reconnecting } from '../../parts/page.ts'
import { link, route } from '../../router.ts'
import { api, serviceNow, sessionOf, workflowAddress } from '../../service.ts'
import { html, useEffect, useMemo, useRef, useState, type VNode } from '../../ui.ts'
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
  const chosen = spans.find(({ key }) => key === shown)
  const from = Math.min(...spans.map((span) => span.from))
  const until = Math.max(from + 1, ...spans.map(({ to }) => to ?? now))
  const temporal = workflowAddress(turnId)
  return html`<section class="timeline">
    <div class="row">
      <p><a href=${link('sessions', sessionId)}>Conversation</a> / Timeline of a turn: <${Summary} turn=${turn} /></p>
      ${temporal && html`<a href=${temporal} target="_blank" rel="noopener noreferrer">Open in Temporal</a>`}
    </div>
    <${Problem} error=${missing ?? error} />
    <${Reconnecting} isShown=${!isConnected} />
    ${spans.length === 0 && missing === undefined && html`<${Quiet}>Loading…<//>`}
    ${
      spans.length > 0 &&
      html`<${Hatch} /><${Legend} hasLosses=${spans.some(({ losses }) => losses.length > 0)} />
      <${Axis} ms=${until - from} />
      <ol class="spans" aria-label="Spans of the turn">${spans.map(
        (
          span,
        ) => html`<${Bar} key=${span.key} href=${at(sessionId, turnId, span.key)} span=${span} from=${from} until=${until}
          now=${now} isChosen=${span.key === shown} />`,
      )}</ol>`
    }
    ${chosen && html`<${Details} key=${chosen.key} span=${chosen} now=${now} count=${chosen.events.length} />`}
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
      const { signal } = closed
      const onConnected = (isConnected: boolean) => setState((before) => ({ ...before, isConnected }))
      for await (const event of sessionOf(sessionId).events({
        turn_id: turnId,
        exclude: DELTAS,
        signal,
        onConnected,
      })) {
        events.push(withoutMessages(event))
        timer ??= setTimeout(draw, DRAW_MS)
      }
      if (!closed.signal.aborted) end()
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

const STATUS: Record<Turn['status'], string> = {
  queued: 'Queued',
  active: 'Running',
  waiting: 'Waiting for a person',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
}

function Summary({ turn }: { turn: Turn | undefined }): string {
  if (turn === undefined) return ''
  const { status, usage, cost_usd } = turn
  const tokens = usage ? usage.input_tokens + usage.output_tokens : undefined
  return [STATUS[status] ?? status, ...costs({ tokens, costUsd: cost_usd ?? undefined })].join(' · ')
}

const costs = ({ tokens, costUsd }: Pick<Span, 'tokens' | 'costUsd'>): string[] => [
  ...(tokens === undefined ? [] : [`${tokens.toLocaleString()} tokens`]),
  ...(costUsd === undefined ? [] : [costUsd === '0' ? '$0' : `$${Number(costUsd).toFixed(4)}`]),
]

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
  const { title, depth, problem } = span
  const to = span.to ?? Math.max(now, span.from)
  const facts = [
    span.to === undefined ? `${durationOf(to - span.from)} so far` : durationOf(to - span.from),
    ...costs(span),
  ]
  return html`<li><a href=${href} class=${`span depth-${depth}`} aria-current=${isChosen ? 'true' : undefined}>
    <span class="name" dir="auto">${title}</span>
    <span class=${problem === undefined ? 'facts quiet' : 'facts problem'}>${facts.join(' · ')}${problem !== undefined && `, ${span.isCancelled ? 'cancelled' : 'failed'}`}</span>
    <${Track} span=${span} from=${from} until=${until} now=${now} />
    <${Losses} losses=${span.losses} />
  </a></li>`
}

/** Events of a span. */
function Details({ span, now, count }: { span: Span; now: number; count: number }): VNode {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // On a small page only the heading would be visible, but the user wants the events.
    const isLow = (heading.current?.getBoundingClientRect().top ?? 0) > innerHeight / 2
    heading.current?.scrollIntoView({ block: isLow ? 'start' : 'nearest' })
  }, [])
  const { title, problem, from, to, events } = span
  // Events are shown unchanged, large ones only once.
  const list = useMemo(
    () =>
      events.map((event) => {
        const label = `${new Date(event.ts).toLocaleTimeString()} ${event.type}`
        return html`<details key=${event.id} open=${events.length === 1}><summary>${label}</summary>
          <${EventText} event=${event} label=${label} /></details>`
      }),
    [events, count],
  )
  return html`<section aria-label="Chosen span">
    <h2 ref=${heading} dir="auto">${title}</h2>
    <p class="quiet">${[durationOf((to ?? now) - from), ...costs(span)].join(' · ')}</p>
    ${problem !== undefined && html`<p class="problem" dir="auto">${problem}</p>`}
    <${Losses} losses=${span.losses} />
    ${list}
  </section>`
}

/** Event as JSON. A model call is shown without its messages until the user asks for them. */
function EventText({ event, label }: { event: Event; label: string }): VNode {
  const [whole, setWhole] = useState<Event | undefined>(undefined)
  const read = async () => setWhole(await readGeneration(event))
  return html`<${LongText} text=${JSON.stringify(whole ?? event, null, 2)} label=${label} />
    ${event.type === 'llm.generation' && whole === undefined && html`<${ActionButton} run=${read}>Load the messages<//>`}`
}

/** Reads a model's call from the events of its turn. */
async function readGeneration({ id, session_id, context }: Event): Promise<Event> {
  const turn_id = context.turn_id ?? undefined
  for (let since_id: string | undefined; ; ) {
    const { data } = await api.events.list({ session_id, turn_id, types: ['llm.generation'], since_id, limit: 10 })
    const found = data.find((event) => event.id === id)
    if (found !== undefined) return found
    since_id = data.at(-1)?.id
    if (since_id === undefined) throw new Error('This event is no longer kept.')
  }
}
