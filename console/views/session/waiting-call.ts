import { ApiError } from 'agent-session-client'
import { useFocusFallback } from '../../parts/focus.ts'
import { Form, type Values } from '../../parts/form.ts'
import { ActionButton } from '../../parts/page.ts'
import { defaultsOf, fieldsOf } from '../../parts/schema-form.ts'
import { api } from '../../service.ts'
import { html, type RefObject, useEffect, useMemo, useRef, useState, type VNode } from '../../ui.ts'
import { lookAgain } from '../../waiting.ts'
import { type Call, QUESTION } from './conversation.ts'

type Props = { sessionId: string; call: Pick<Call, 'id' | 'name' | 'arguments' | 'kind'> }

/**
 * Call that waits for a person: for approval, for the answer to a tool's question, or for a tool's result. Once it is
 * over, it keeps its height, so that nothing moves under a pointer.
 */
export function WaitingCall({ isOver = false, ...props }: Props & { isOver?: boolean }): VNode {
  const [isAnswered, setAnswered] = useState(false)
  const place = useRef<HTMLDivElement>(null)
  // Measured before the page changes.
  const height = useMemo(() => place.current?.offsetHeight, [isAnswered || isOver])
  return html`<div ref=${place} style=${{ minHeight: height && `${height}px` }}>
    ${
      isAnswered || isOver
        ? html`<div class="quiet" role="status">${isAnswered ? 'Answered.' : 'No longer waiting.'}</div>`
        : html`<${Asking} ...${props} onAnswered=${() => setAnswered(true)} />`
    }
  </div>`
}

/** Next element for the focus after an answer: the call, or a link in its card. */
const fallbackOf = (element: HTMLElement): HTMLElement | null =>
  element.closest('.call')?.querySelector<HTMLElement>('summary') ?? element.closest('li')?.querySelector('a') ?? null

/** Focuses the question if the user is idle; not an answer, because the next key may be meant for something else. */
function useEntry(box: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { activeElement } = document
    const isIdle = activeElement?.id === 'message' && (activeElement as HTMLTextAreaElement).value === ''
    if (isIdle) box.current?.focus()
  }, [])
}

/** Time for which a call must not move before it can be answered. */
const STILL_MS = 700

/**
 * Reports whether nothing around an element has moved for a moment; until then, a key or click may be meant for what
 * was there before. An element with the focus is in use, and stays enabled.
 */
function useStill(ways: RefObject<HTMLElement | null>): boolean {
  const [isStill, setStill] = useState(false)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    // The first call reports the initial size.
    const movement = new ResizeObserver(() => {
      if (!ways.current?.contains(document.activeElement)) setStill(false)
      clearTimeout(timer)
      timer = setTimeout(() => setStill(true), STILL_MS)
    })
    const list = ways.current?.closest('.chat, .cards')
    if (list) movement.observe(list)
    return () => {
      movement.disconnect()
      clearTimeout(timer)
    }
  }, [])
  return isStill
}

function Asking({ sessionId, call, onAnswered }: Props & { onAnswered(): void }): VNode {
  const box = useFocusFallback(fallbackOf)
  useEntry(box)
  const ways = useRef<HTMLDivElement>(null)
  const isStill = useStill(ways)
  const submit = async (result: { result?: unknown; error?: string }) => {
    try {
      await api.turns.submitToolResults({ session_id: sessionId, tool_results: [{ tool_call_id: call.id, ...result }] })
    } catch (error) {
      if (!isAnsweredAlready(error)) throw error
    }
    lookAgain()
    onAnswered()
  }
  const label = call.kind === 'approval' ? `Approval of ${call.name}` : 'Answer'
  return html`<div ref=${box} tabindex="-1" role="group" aria-label=${label}>
    <div ref=${ways} inert=${!isStill}><${Ways} call=${call} submit=${submit} /></div>
  </div>`
}

/** Ways to answer a call. */
function Ways({ call, submit }: { call: Props['call']; submit: Submit }): VNode {
  if (call.kind === 'approval') {
    return html`<div class="actions">
      <${ActionButton} className="primary" run=${() => submit({ result: { approved: true } })}>Approve<//>
      <${ActionButton} run=${() => submit({ result: { approved: false } })}>Deny<//>
    </div>`
  }
  if (call.name === QUESTION) return html`<${Question} given=${call.arguments ?? {}} submit=${submit} />`
  return html`<${Result} name=${call.name} submit=${submit} />`
}

/** Reports whether somebody else answered first: the call no longer waits. */
const isAnsweredAlready = (error: unknown): boolean =>
  error instanceof ApiError && (error.code === 'not_waiting' || error.field?.endsWith('.tool_call_id') === true)

type Submit = (result: { result?: unknown; error?: string }) => Promise<void>

/** Question of a tool, with a form for the answer. */
function Question({ given, submit }: { given: Record<string, unknown>; submit: Submit }): VNode {
  const { message, requested_schema, url, tool } = given
  const fields = fieldsOf(requested_schema)
  const raw = [{ name: 'content', label: 'Answer', kind: 'json' } as const]
  const accept = (values: Values) => {
    const content = fields
      ? Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
      : values.content
    return submit({ result: { action: 'accept', ...(content ? { content } : {}) } })
  }
  const isLink = typeof url === 'string' && /^https?:/.test(url)
  return html`
    ${typeof tool === 'string' && html`<p class="quiet">Asked by <code>${tool}</code></p>`}
    <p dir="auto">${typeof message === 'string' && message}</p>
    ${isLink && html`<p><a href=${url} target="_blank" rel="noopener noreferrer">${url}</a></p>`}
    <${Form} fields=${isLink ? [] : (fields ?? raw)} values=${defaultsOf(requested_schema)} action=${isLink ? 'Done' : 'Answer'} onSubmit=${accept} />
    <div class="actions">
      <${ActionButton} run=${() => submit({ result: { action: 'decline' } })}>Decline<//>
      <${ActionButton} run=${() => submit({ result: { action: 'cancel' } })}>Dismiss without an answer<//>
    </div>`
}

/** Result of a tool that a client runs. */
function Result({ name, submit }: { name: string; submit: Submit }): VNode {
  const [isError, setError] = useState(false)
  const [isJson, setJson] = useState(false)
  const label = isError ? 'What went wrong' : `Result of ${name}`
  const kind = isJson && !isError ? 'json' : 'longtext'
  const fields = [{ name: 'result', label, kind, rows: 3, isRequired: true }]
  return html`<${Form} fields=${fields} action="Answer"
    onSubmit=${({ result }: Values) => submit(isError ? { error: String(result) } : { result })}>
    <div class="actions">
      <label><input type="checkbox" checked=${isError} onChange=${() => setError(!isError)} /> It failed</label>
      ${!isError && html`<label><input type="checkbox" checked=${isJson} onChange=${() => setJson(!isJson)} /> JSON</label>`}
    </div>
  <//>`
}
