import type { Event, Turn } from 'agent-session-client'
import { JsonSwitch } from '../../parts/call/body.ts'
import { Values } from '../../parts/call/values.ts'
import { durationOf } from '../../parts/duration.ts'
import { Fold } from '../../parts/fold.ts'
import { LongText } from '../../parts/long-text.ts'
import { ActionButton, Quiet } from '../../parts/page.ts'
import { Pictures } from '../../parts/pictures.ts'
import { html, useEffect, useMemo, useRef, useState, type VNode } from '../../ui.ts'
import { textOf } from '../session/conversation.ts'
import { costs, exactTime } from './facts.ts'
import { readGeneration } from './generation.ts'
import { ModelCall } from './model-call.ts'
import type { Span } from './spans.ts'
import { ToolRun } from './tool-run.ts'
import { Losses } from './track.ts'

type Props = { sessionId: string; span: Span; spans: Span[]; turn: Turn | undefined; now: number }

/** Chosen span: for people, or its events as JSON. */
export function Details({ sessionId, span, spans, turn, now }: Props): VNode {
  const heading = useRef<HTMLHeadingElement>(null)
  const [isJson, setJson] = useState(false)
  useEffect(() => {
    // On a small page only the heading would be visible, but the user wants the rest.
    const isLow = (heading.current?.getBoundingClientRect().top ?? 0) > innerHeight / 2
    heading.current?.scrollIntoView({ block: isLow ? 'start' : 'nearest' })
  }, [])
  const { kind, title, problem, from, to } = span
  const facts = [`${exactTime(from)} – ${to === undefined ? 'now' : exactTime(to)}`, durationOf((to ?? now) - from)]
  return html`<section class="span-details" aria-label="Chosen span">
    <div class="head-row"><h2 ref=${heading} dir="auto">${title}</h2><${JsonSwitch} isOn=${isJson} onSwitch=${setJson} /></div>
    <p class="quiet">${[...facts, ...costs(span)].join(' · ')}</p>
    ${problem !== undefined && html`<p class="problem" dir="auto">${problem}</p>`}
    <${Losses} losses=${span.losses} />
    ${isJson && html`<${Events} span=${span} spans=${spans} />`}
    ${!isJson && ['reason', 'model'].includes(kind) && html`<${ModelCall} span=${span} spans=${spans} turn=${turn} />`}
    ${!isJson && ['tool', 'waiting'].includes(kind) && html`<${ToolRun} span=${span} spans=${spans} sessionId=${sessionId} />`}
    ${!isJson && ['turn', 'queue'].includes(kind) && html`<${Whole} span=${span} spans=${spans} turn=${turn} />`}
    ${!isJson && kind === 'act' && html`<${Quiet}>Each call is a row of its own: choose one to see its arguments and its result.<//>`}
  </section>`
}

/** Message and output of a turn. */
function Whole({ span, spans, turn }: Pick<Props, 'span' | 'spans' | 'turn'>): VNode {
  const input = spans.flatMap(({ events }) => events).find((event) => event.type === 'input.message')
  const content = input?.data.message.content ?? []
  return html`
    ${content.length > 0 && html`<h3>Message</h3><${LongText} text=${textOf(content)} label="Message" /><${Pictures} content=${content} />`}
    ${span.kind === 'turn' && html`<${StructuredOutput} turn=${turn} />`}`
}

/** Output of a turn that has a schema for it. */
export const StructuredOutput = ({ turn }: { turn: Turn | undefined }): VNode | null =>
  turn?.output ? html`<h3>Output</h3><${Values} values=${turn.output} label="Output" />` : null

/** Events of a span as JSON. */
function Events({ span: { events }, spans }: Pick<Props, 'span' | 'spans'>): VNode {
  // Events are shown unchanged, large ones only once.
  const list = useMemo(
    () =>
      events.map((event) => {
        const label = `${exactTime(event.ts)} ${event.type}`
        const content = () => html`<${EventText} event=${event} label=${label} spans=${spans} />`
        return html`<${Fold} key=${event.id} isOpen=${events.length === 1} summary=${label} content=${content} />`
      }),
    [events, events.length],
  )
  return html`${list}`
}

/** Event as JSON. A model call is shown without its messages until the user asks for them. */
function EventText({ event, label, spans }: { event: Event; label: string; spans: Span[] }): VNode {
  const [whole, setWhole] = useState<Event | undefined>(undefined)
  const text = useMemo(() => JSON.stringify(whole ?? event, null, 2), [whole, event])
  return html`<${LongText} text=${text} label=${label} />
    ${
      event.type === 'llm.generation' &&
      whole === undefined &&
      html`<${ActionButton} run=${async () => setWhole(await readGeneration(event, spans))}>Load the messages<//>`
    }`
}
