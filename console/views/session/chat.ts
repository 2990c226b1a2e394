import type { ContentPart, Message } from 'agent-session-client'
import { CallArguments } from '../../parts/call-arguments.ts'
import { durationOf } from '../../parts/duration.ts'
import { LongText } from '../../parts/long-text.ts'
import { Markdown } from '../../parts/markdown.ts'
import { ActionButton, Problem, Quiet, Reconnecting } from '../../parts/page.ts'
import { plain } from '../../parts/plain.ts'
import { subjectOf } from '../../parts/subject.ts'
import { link } from '../../router.ts'
import { api, fetchBlob } from '../../service.ts'
import { html, type RefObject, useEffect, useLayoutEffect, useMemo, useRef, useState, type VNode } from '../../ui.ts'
import { lookAgain } from '../../waiting.ts'
import { Composer, type Draft } from './composer.ts'
import { type Call, type Part, QUESTION, type ShownTurn, textOf } from './conversation.ts'
import type { Live } from './live.ts'
import { WaitingCall } from './waiting-call.ts'

type Props = {
  sessionId: string
  live: Live
  draft: Draft
  /** The reader's position when they left the conversation. */
  place: ReadingPlace
  /** Purpose of the agent. */
  about?: string | null
}

/** Turn at the reader's position, and its distance from the top of the window. Undefined at the end. */
export type ReadingPlace = { current: { turnId: string; top: number } | undefined }

/** Time after which a reopened page has settled, unless the reader acts earlier. */
const SETTLING_MS = 10_000
/** Events by which a reader moves or uses a page. */
const READERS_INPUTS = ['wheel', 'touchstart', 'pointerdown', 'keydown'] as const
/** Distance from the end of the page within which the reader counts as being at the end. */
const END_PX = 80

/** Conversation of a session, live, with a box for the next message. */
export function Chat({ sessionId, live, draft, place, about }: Props): VNode {
  const { conversation } = live.shown.value
  const { turns } = conversation
  const unfinished = turns.filter(({ status }) => ['queued', 'active', 'waiting'].includes(status))
  useEffect(live.start, [live])
  const isWaiting = turns.some(({ status }) => status === 'waiting')
  const queued = turns.filter(({ status }) => status === 'queued').length
  useEffect(lookAgain, [isWaiting])
  const chat = useRef<HTMLDivElement>(null)
  useAnchor(chat, turns[0]?.id)
  const { goToEnd } = useEnd(chat, place)
  return html`
    ${live.hasEarlier.value && html`<${ActionButton} run=${live.loadEarlier}>Earlier messages<//>`}
    ${live.state.value === 'loading' && live.error.value === undefined && html`<${Quiet}>Loading…<//>`}
    ${live.state.value === 'live' && turns.length === 0 && html`<div class="middle quiet"><p>No messages yet.</p>${about && html`<p dir="auto">${about}</p>`}</div>`}
    <div class="chat" ref=${chat} role="log" aria-label="Conversation" aria-busy=${unfinished.length > 0}>${turns.map(
      (turn) => html`<${Turn} key=${turn.id} sessionId=${sessionId} turn=${turn} version=${turn.version} />`,
    )}</div>
    <${Problem} error=${live.error.value} />
    ${
      live.state.value === 'deleted'
        ? html`<p class="problem" role="alert">This session was deleted.</p>`
        : html`<${Composer} sessionId=${sessionId} draft=${draft} isBusy=${unfinished.length > 0} isWaiting=${isWaiting} queued=${queued}
            onSent=${goToEnd} isFirst=${live.state.value === 'live' && turns.length === 0}><${Reconnecting} isShown=${!live.isConnected.value} /><//>`
    }`
}

/** Keeps the reader's position when turns are added or removed above it. */
function useAnchor(chat: RefObject<HTMLElement | null>, first: string | undefined): void {
  // Measured before the page changes.
  const anchor = useMemo(() => {
    const element = chat.current?.firstElementChild
    return element && { element, top: element.getBoundingClientRect().top }
  }, [first])
  useLayoutEffect(() => {
    if (anchor?.element.isConnected) scrollBy(0, anchor.element.getBoundingClientRect().top - anchor.top)
  }, [first])
}

/**
 * Keeps the end in view while the page grows, until the reader scrolls up; `goToEnd` returns there. Late layout, such
 * as of images, grows the page too.
 */
function useEnd(chat: RefObject<HTMLElement | null>, place: ReadingPlace): { goToEnd(): void } {
  const isAtEnd = useRef(place.current === undefined)
  /** Previous scroll position in pixels from the top. */
  const before = useRef(0)
  /** Position to restore while turns that come into view still grow. */
  const back = useRef(place.current)
  const settle = () => {
    back.current = undefined
  }
  const stay = () => {
    if (back.current) goBackTo(back.current)
    if (back.current || !isAtEnd.current) return
    const page = document.documentElement
    page.scrollTop = page.scrollHeight
    before.current = page.scrollTop
  }
  useEffect(() => {
    const look = () => {
      if (back.current) return
      const { scrollHeight, clientHeight, scrollTop } = document.documentElement
      // The page may have grown before the scroll event, so only an upward scroll is the reader's.
      if (scrollHeight - clientHeight - scrollTop < END_PX) isAtEnd.current = true
      else if (scrollTop < before.current) isAtEnd.current = false
      before.current = scrollTop
    }
    const growth = new ResizeObserver(stay)
    if (chat.current) growth.observe(chat.current)
    addEventListener('scroll', look, { passive: true })
    for (const input of READERS_INPUTS) addEventListener(input, settle, { passive: true })
    return () => {
      growth.disconnect()
      removeEventListener('scroll', look)
      for (const input of READERS_INPUTS) removeEventListener(input, settle)
    }
  }, [])
  useLayoutEffect(() => {
    stay()
    const timer = setTimeout(settle, SETTLING_MS)
    return () => {
      clearTimeout(timer)
      place.current = isAtEnd.current || !chat.current ? undefined : placeIn(chat.current)
    }
  }, [])
  const goToEnd = () => {
    settle()
    isAtEnd.current = true
    stay()
  }
  return { goToEnd }
}

/** Finds the reader's position: the first visible turn. */
function placeIn(chat: HTMLElement): ReadingPlace['current'] {
  const turn = [...chat.children].find((child) => child.getBoundingClientRect().bottom > 0)
  return turn && { turnId: turn.id, top: turn.getBoundingClientRect().top }
}

function goBackTo({ turnId, top }: NonNullable<ReadingPlace['current']>): void {
  const turn = document.getElementById(turnId)
  if (turn) scrollBy(0, turn.getBoundingClientRect().top - top)
}

function Turn({ sessionId, turn, version }: { sessionId: string; turn: ShownTurn; version: number }): VNode {
  const cancel = async () => {
    await api.turns.cancel({ session_id: sessionId, turn_id: turn.id })
    lookAgain()
  }
  // Unchanged turns are not redrawn.
  return useMemo(
    () => html`<article class="turn" id=${turn.id}>
      ${turn.input && html`<${Said} message=${turn.input} />`}
      ${turn.parts.map((part) => html`<${Shown} key=${part.key} sessionId=${sessionId} part=${part} />`)}
      <p class="quiet outcome">
        <${Outcome} turn=${turn} />
        <a href=${link('sessions', sessionId, 'turns', turn.id)}>Timeline</a>
        ${
          ['queued', 'active', 'waiting'].includes(turn.status) &&
          html`<${ActionButton} run=${cancel} fallback=${messageBox}>${turn.status === 'queued' ? 'Remove from the queue' : 'Stop'}<//>`
        }
      </p>
    </article>`,
    [sessionId, turn, version],
  )
}

/** The service's reasons begin in lower case, and some with the word "cancelled". */
const cancelledText = (reason: string | undefined): string =>
  reason?.startsWith('cancelled') ? `C${reason.slice(1)}.` : `Cancelled${reason ? `: ${reason}` : ''}.`

const messageBox = (): HTMLElement | null => document.getElementById('message')

/** State of a turn. */
function Outcome({ turn }: { turn: ShownTurn }): VNode | string {
  const { status, error, durationMs, usage, costUsd } = turn
  if (status === 'queued') return 'Queued.'
  if (status === 'active') return html`<span role="status">Working…</span>`
  if (status === 'waiting') return html`<span role="status">Waiting for you.</span>`
  if (status === 'failed') return html`<strong class="problem" dir="auto">Failed: ${error}</strong>`
  if (status === 'cancelled') return html`<span dir="auto">${cancelledText(error)}</span>`
  const tokens = usage && `${(usage.input_tokens + usage.output_tokens).toLocaleString()} tokens`
  return [
    durationMs !== undefined && durationOf(durationMs),
    tokens,
    costUsd && (costUsd === '0' ? '$0' : `$${Number(costUsd).toFixed(4)}`),
  ]
    .filter(Boolean)
    .join(' · ')
}

const Said = ({ message }: { message: Message }): VNode => html`<div class="said">
  <${LongText} className="typed" text=${textOf(message.content)} label="User input" /><${Pictures} content=${message.content} />
</div>`

function Shown({ sessionId, part }: { sessionId: string; part: Part }): VNode {
  if (part.type === 'said') return html`<${Said} message=${part.message} />`
  if (part.type === 'retry')
    return html`<p class="quiet" dir="auto">Retrying${part.count > 1 && ` (${part.count} times)`}: ${part.error}</p>`
  if (part.type === 'calls') {
    return html`<ul class="calls">${part.calls.map(
      (call) => html`<${Tool} key=${call.id} sessionId=${sessionId} call=${call} />`,
    )}</ul>`
  }
  return html`<div class="answer">
    ${
      part.thinking !== '' &&
      html`<details open=${part.text === '' && !part.isComplete}><summary>Thinking</summary>
        <${LongText} text=${part.thinking} label="Thinking" /></details>`
    }
    <${Markdown} text=${part.text} />
    ${part.isInterrupted && html`<p class="quiet">Interrupted.</p>`}
    ${part.isTooLong && html`<p class="quiet">Cut off: the answer reached the model’s limit of length.</p>`}
  </div>`
}

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

function Tool({ sessionId, call }: { sessionId: string; call: Call }): VNode {
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

/** Images stored in the service; others are links. */
function Pictures({ content }: { content: ContentPart[] }): VNode {
  return html`${content.map((part, index) => {
    if (part.type === 'image_file')
      return html`<${Picture} key=${index} id=${part.image_id} name=${part.filename ?? 'Picture'} />`
    if (part.type !== 'image') return null
    if (part.base64) {
      const type = /^image\/(png|jpeg|gif|webp)$/.test(part.media_type ?? '') ? part.media_type : 'image/png'
      return html`<img class="picture" key=${index} src=${`data:${type};base64,${part.base64}`} alt="Picture" />`
    }
    const isLink = /^https?:/.test(part.url ?? '')
    return isLink && html`<a key=${index} href=${part.url} target="_blank" rel="noopener noreferrer">${part.url}</a>`
  })}`
}

/** Image stored in the service. It is fetched with the user's credentials. */
function Picture({ id, name }: { id: string; name: string }): VNode {
  const [source, setSource] = useState<string | undefined>(undefined)
  const [isLarge, setLarge] = useState(false)
  const [error, setError] = useState<unknown>(undefined)
  useEffect(() => {
    let url: string | undefined
    let isWanted = true
    fetchBlob(`/v1/images/${encodeURIComponent(id)}${isLarge ? '' : '/thumbnail'}`).then((blob) => {
      if (!isWanted) return
      url = URL.createObjectURL(blob)
      setSource(url)
    }, setError)
    return () => {
      isWanted = false
      if (url !== undefined) URL.revokeObjectURL(url)
    }
  }, [id, isLarge])
  return html`<${Problem} error=${error} />${
    source &&
    html`<button type="button" class="plain" title=${isLarge ? 'Smaller' : 'Larger'} aria-pressed=${isLarge} onClick=${() => setLarge(!isLarge)}>
      <img class="picture" src=${source} alt=${plain(name)} /></button>`
  }`
}
