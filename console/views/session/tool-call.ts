import type { ContentPart } from 'agent-session-client'
import { CallArguments } from '../../parts/call-arguments.ts'
import { LongText } from '../../parts/long-text.ts'
import { subjectOf } from '../../parts/subject.ts'
import { html, useMemo, useRef, type VNode } from '../../ui.ts'
import { type Call, QUESTION, textOf } from './conversation.ts'
import { Pictures } from './pictures.ts'
import { WaitingCall } from './waiting-call.ts'

const STATUS: Record<Call['status'], string> = {
  planned: 'planned',
  running: 'running…',
  waiting: 'waiting for you',
  success: 'done',
  error: 'failed',
  timeout: 'timed out',
  cancelled: 'cancelled',
}

/** Question of a tool, once it has been answered. */
const questionOf = ({ status, arguments: given }: Call): Call['arguments'] =>
  status === 'waiting' || typeof given?.message !== 'string' ? undefined : { question: given.message }

/** Outcomes of a question by the action of its answer. */
const ACTIONS: Record<string, string> = { accept: 'answered', decline: 'declined', cancel: 'dismissed' }

function outcomeOf({ name, status, result }: Call): string {
  if (name !== QUESTION || status !== 'success') return STATUS[status]
  const action = /^\s*\{"action":\s*"(\w+)"/.exec(textOf(result))?.[1] ?? ''
  return ACTIONS[action] ?? STATUS[status]
}

/** Call of a tool: its arguments, its result, and the ways to answer while it waits. */
export function Tool({ sessionId, call }: { sessionId: string; call: Call }): VNode {
  const { name, title, status, result, error } = call
  // A waiting question is shown with its form.
  const given = name === QUESTION ? questionOf(call) : call.arguments
  const shown = useMemo(() => readable(result), [result])
  const isOpen = status === 'running' || status === 'waiting'
  const hasWaited = useRef(false)
  hasWaited.current ||= status === 'waiting'
  return html`<li class="call">
    <details open=${isOpen}>
      <summary><code>${title}</code> <span class="quiet subject" dir="auto">${subjectOf(given)}</span>
        <span class=${status === 'error' ? 'problem' : 'quiet'}>${outcomeOf(call)}</span></summary>
      <${CallArguments} name=${name} given=${given} />
      ${result.length > 0 && html`<p class="label">Result</p><${LongText} text=${shown} label=${`Result of ${name}`} /><${Pictures} content=${result} />`}
      ${error && html`<p class="problem" dir="auto">${error}</p>`}
    </details>
    ${hasWaited.current && isOpen && html`<${WaitingCall} sessionId=${sessionId} call=${call} isOver=${status !== 'waiting'} />`}
  </li>`
}

/** Returns a result for people: a text unchanged, anything else as JSON. */
function readable(content: ContentPart[]): string {
  const text = textOf(content)
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  } catch {
    return text
  }
}
