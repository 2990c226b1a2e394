import { ActionButton, Problem, Quiet, Reconnecting } from '../../parts/page.ts'
import { html, useEffect, useRef, type VNode } from '../../ui.ts'
import { lookAgain } from '../../waiting.ts'
import { Composer, type Draft } from './composer.ts'
import type { Live } from './live.ts'
import { type ReadingPlace, useAnchor, useEnd } from './reading-place.ts'
import { Turn } from './turn-item.ts'

type Props = {
  sessionId: string
  live: Live
  draft: Draft
  /** The reader's position when they left the conversation. */
  place: ReadingPlace
  /** Purpose of the agent. */
  about?: string | null
}

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
      (turn) => html`<${Turn} key=${turn.id} sessionId=${sessionId} turn=${turn} version=${turn.version}
        takeovers=${live.takeovers.value.get(turn.id)} />`,
    )}</div>
    <${Problem} error=${live.error.value} />
    ${
      live.state.value === 'deleted'
        ? html`<p class="problem" role="alert">This session was deleted.</p>`
        : html`<${Composer} sessionId=${sessionId} draft=${draft} isBusy=${unfinished.length > 0} isWaiting=${isWaiting} queued=${queued}
            onSent=${goToEnd} isFirst=${live.state.value === 'live' && turns.length === 0}><${Reconnecting} isShown=${!live.isConnected.value} /><//>`
    }`
}
