import { ApiError } from 'agent-session-client'
import { isNotFound } from '../../load.ts'
import { useFocusFallback } from '../../parts/focus.ts'
import { useOneAtATime } from '../../parts/one-at-a-time.ts'
import { api } from '../../service.ts'
import { html, type RefObject, useEffect, useId, useMemo, useRef, useState, type VNode } from '../../ui.ts'
import { lookAgain } from '../../waiting.ts'
import { Answer } from './answer.ts'
import { Approval, chosen } from './approval.ts'
import type { Asking as Ask, Asked, Submit } from './asked.ts'
import { QUESTION } from './conversation.ts'
import { Question } from './question.ts'

type Props = { sessionId: string; call: Asked }

/**
 * Call that waits for a person: for approval, for the answer to a tool's question, or for a tool's result. Once it is
 * over, it keeps its height, so that nothing moves under a pointer.
 */
export function WaitingCall({ isOver = false, ...props }: Props & { isOver?: boolean }): VNode {
  const [outcome, setOutcome] = useState('')
  const place = useRef<HTMLDivElement>(null)
  // Measured before the page changes.
  const height = useMemo(() => place.current?.offsetHeight, [outcome !== '' || isOver])
  return html`<div ref=${place} class="waiting-call" style=${{ minHeight: height && `${height}px` }}>
    ${
      outcome !== '' || isOver
        ? html`<div class="quiet" role="status">${outcome || 'No longer waiting.'}</div>`
        : html`<${Asking} ...${props} onOver=${setOutcome} />`
    }
  </div>`
}

/** Next element for the focus after an answer: the call, or a link in its card. */
const fallbackOf = (element: HTMLElement): HTMLElement | null =>
  element.closest('.call')?.querySelector<HTMLElement>('summary') ?? element.closest('li')?.querySelector('a') ?? null

/** Time for which a call must not move before it can be answered. */
const STILL_MS = 700

/**
 * Reports whether nothing around an element has moved for a moment; until then, a key or click may be meant for what
 * was there before. An element that has the focus, or that a key has chosen, is in use and stays enabled.
 */
function useStill(ways: RefObject<HTMLElement | null>): boolean {
  const [isStill, setStill] = useState(false)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let before = ''
    const list = ways.current?.closest('.chat, .cards')
    const look = () => {
      const { top, width, height } = list?.getBoundingClientRect() ?? new DOMRect()
      const place = [Math.round(top + scrollY), width, height].join()
      if (place === before) return
      before = place
      const isUsed = [document.activeElement, chosen.peek() ?? null].some((one) => ways.current?.contains(one))
      if (!isUsed) setStill(false)
      clearTimeout(timer)
      timer = setTimeout(() => setStill(true), STILL_MS)
    }
    const growth = new ResizeObserver(look)
    // An error above the list moves it, and changes no size.
    const news = new MutationObserver(look)
    const page = list?.closest('main')
    // The first call reports the initial place.
    for (const element of [list, page?.querySelector('.head')]) if (element) growth.observe(element)
    if (page) news.observe(page, { childList: true })
    return () => {
      growth.disconnect()
      news.disconnect()
      clearTimeout(timer)
    }
  }, [])
  return isStill
}

function Asking({ sessionId, call, onOver }: Props & { onOver(outcome: string): void }): VNode {
  const box = useFocusFallback(fallbackOf)
  const ways = useRef<HTMLDivElement>(null)
  const isStill = useStill(ways)
  const once = useOneAtATime()
  const submit: Submit = (result) =>
    once('answer', async () => {
      let outcome = 'Answered.'
      try {
        const tool_results = [{ tool_call_id: call.id, ...result }]
        await api.turns.submitToolResults({ session_id: sessionId, tool_results })
      } catch (error) {
        outcome = overBy(error)
      }
      lookAgain()
      onOver(outcome)
    })
  const id = useId()
  const name =
    call.kind === 'approval'
      ? { 'aria-label': `Approval of ${call.name}` }
      : { 'aria-label': 'Answer', 'aria-labelledby': id }
  return html`<div ref=${box} tabindex="-1" role="group" ...${name}>
    <div ref=${ways} inert=${!isStill}><${Ways} id=${id} call=${call} submit=${submit} /></div>
  </div>`
}

/** Ways to answer a call. */
function Ways(props: Ask): VNode {
  const { kind, name } = props.call
  return html`<${kind === 'approval' ? Approval : name === QUESTION ? Question : Answer} ...${props} />`
}

/** Says why a call no longer waits: somebody else was first. Throws all other errors. */
function overBy(error: unknown): string {
  if (isNotFound(error)) return 'This session was deleted.'
  if (error instanceof ApiError && (error.code === 'not_waiting' || error.field?.endsWith('.tool_call_id')))
    return 'Already answered, or no longer waiting.'
  throw error
}
