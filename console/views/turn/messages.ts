import type { ContentPart, Message } from 'agent-session-client'
import { CallArguments } from '../../parts/call/arguments.ts'
import { ResultValue } from '../../parts/call/result.ts'
import { CallSummary } from '../../parts/call/title.ts'
import { Fold } from '../../parts/fold.ts'
import { LongText } from '../../parts/long-text.ts'
import { Pictures } from '../../parts/pictures.ts'
import { subjectOf } from '../../parts/subject.ts'
import { html, useMemo, useState, type VNode } from '../../ui.ts'
import { newFrom } from './input.ts'

const ROLES: Record<Message['role'], string> = {
  system: 'System',
  user: 'User',
  agent: 'Assistant',
  tool_result: 'Tool result',
}
/** Number of earlier messages that are shown at once. */
const EARLIER = 20

/** Names of tools as people read them. */
export type Names = ReadonlyMap<string, string>
type Shared = { names: Names; callers: ReadonlyMap<string, string> }

/** Messages that a model got, by role. Messages that it had read before are folded. */
export function Messages({ messages, names }: { messages: Message[]; names: Names }): VNode {
  const [count, setCount] = useState(EARLIER)
  const shared = useMemo(() => ({ names, callers: callersOf(messages) }), [messages, names])
  const start = newFrom(messages)
  const draw = (some: Message[]) =>
    html`<ol class="messages">${some.map((message) => html`<${MessageOf} key=${message.id} message=${message} ...${shared} />`)}</ol>`
  const earlier = () => html`
    ${start > count && html`<button type="button" onClick=${() => setCount(count + EARLIER)}>Show earlier messages</button>`}
    ${draw(messages.slice(Math.max(0, start - count), start))}`
  return html`${
    start > 0 &&
    html`<${Fold} className="earlier" content=${earlier} summary=${`${start.toLocaleString()} earlier ${start === 1 ? 'message' : 'messages'}`} />`
  }${draw(messages.slice(start))}`
}

/** Returns the names of the called tools by the ids of their calls. In turns of earlier releases an id may repeat. */
const callersOf = (messages: Message[]): Map<string, string> =>
  new Map(
    messages.flatMap(({ content }) =>
      content.flatMap((part) => (part.type === 'tool_call' ? [[part.id, part.name] as const] : [])),
    ),
  )

function MessageOf({ message: { role, content, thinking }, ...shared }: { message: Message } & Shared): VNode {
  return html`<li class=${`message ${role}`}>
    <p class="role">${ROLES[role] ?? role}</p>
    ${thinking && html`<${Fold} summary="Thinking" content=${() => html`<${LongText} text=${thinking} label="Thinking" />`} />`}
    ${content.map((part, index) => html`<${PartOf} key=${index} part=${part} ...${shared} />`)}
  </li>`
}

function PartOf({ part, names, callers }: { part: ContentPart } & Shared): VNode {
  if (part.type === 'text') return html`<${LongText} text=${part.text} label="Text of the message" />`
  if (part.type === 'tool_call') return html`<${CallOf} call=${part} names=${names} />`
  if (part.type === 'tool_result') {
    const name = callers.get(part.tool_call_id) ?? 'tool'
    return html`<${Fold} className="call" isOpen summary=${html`<${CallSummary} name=${name} title=${names.get(name) ?? name} />`} content=${() =>
      part.error
        ? html`<p class="problem" dir="auto">${part.error}</p>`
        : html`<div class="call-body"><${ResultValue} name=${name} value=${part.result} /></div>`} />`
  }
  if (part.type === 'image' && !part.url && !part.base64) return html`<p class="quiet">An image.</p>`
  return html`<${Pictures} content=${[part]} />`
}

type RequestedCall = { name: string; arguments: Record<string, unknown> }

/** Call that a model asked for. */
export const CallOf = ({ call: { name, arguments: given }, names }: { call: RequestedCall; names: Names }): VNode =>
  html`<${Fold} className="call" summary=${html`<${CallSummary} name=${name} title=${names.get(name) ?? name} subject=${subjectOf(given)} />`}
    content=${() => html`<div class="call-body"><${CallArguments} name=${name} given=${given} /></div>`} />`
