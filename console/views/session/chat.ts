import type { Agent, Session } from 'agent-session-client'
import { compareLink } from '../../parts/compare-link.ts'
import { ActionButton, Problem, Reconnecting } from '../../parts/page.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { html, useEffect, useRef, type VNode } from '../../ui.ts'
import { lookAgain } from '../../waiting.ts'
import { useDecidingKeys } from '../inbox-keys.ts'
import { Composer, type Draft } from './composer.ts'
import type { ShownTurn } from './conversation.ts'
import type { Live } from './live.ts'
import { type ReadingPlace, useAnchor, useEnd } from './reading-place.ts'
import { Starters } from './starters.ts'
import { Turn } from './turn-item.ts'

type Props = {
  sessionId: string
  session: Session | undefined
  agent: Agent | undefined
  live: Live
  draft: Draft
  /** The reader's position when they left the conversation, or the turn that the address names. */
  place: ReadingPlace
  /** Whether keys led here, and shall lead on. */
  isWalked: boolean
}

/** Conversation of a session, live, with a box for the next message. */
export function Chat({ sessionId, session, agent, live, draft, place, isWalked }: Props): VNode {
  const { conversation } = live.shown.value
  const { turns } = conversation
  const unfinished = turns.filter(({ status }) => ['queued', 'active', 'waiting'].includes(status))
  useEffect(live.start, [live])
  const isWaiting = turns.some(({ status }) => status === 'waiting')
  const queued = turns.filter(({ status }) => status === 'queued').length
  useEffect(lookAgain, [isWaiting])
  const { value: state } = live.state
  useEffect(() => {
    // The problem is shown when the reader loads more.
    if (state === 'live' && place.current) live.loadBackTo(place.current.turnId).catch(() => {})
  }, [live, state])
  const chat = useRef<HTMLDivElement>(null)
  useAnchor(chat, turns[0]?.id)
  useDecidingKeys(chat, turns)
  const { goToEnd } = useEnd(chat, place)
  const isEmpty = live.state.value === 'live' && turns.length === 0
  const repeating = session?.forked_from && repeatingOf(session, turns)
  return html`
    ${live.hasEarlier.value && html`<${ActionButton} run=${live.loadEarlier}>Earlier messages<//>`}
    ${live.state.value === 'loading' && live.error.value === undefined && html`<${Skeleton} />`}
    ${isEmpty && html`<${Starters} agent=${agent} draft=${draft} />`}
    <div class="chat" ref=${chat} role="log" aria-label="Conversation" aria-busy=${unfinished.length > 0}>${turns.map(
      (turn) => html`<${Turn} key=${turn.id} sessionId=${sessionId} turn=${turn} version=${turn.version}
        comparison=${turn === repeating?.turn ? repeating.comparison : undefined} takeovers=${live.takeovers.value.get(turn.id)} />`,
    )}</div>
    <${Problem} error=${live.error.value} />
    ${
      live.state.value === 'deleted'
        ? html`<p class="problem" role="alert">This session was deleted.</p>`
        : html`<${Composer} sessionId=${sessionId} draft=${draft} isBusy=${unfinished.length > 0} isWaiting=${isWaiting} queued=${queued}
            onSent=${goToEnd} isFirst=${isEmpty && !isWalked}><${Reconnecting} isShown=${!live.isConnected.value} /><//>`
    }`
}

/** Returns the first turn of a fork's own, and the address of its comparison with the run that it repeats. */
function repeatingOf({ id, forked_from, created_at }: Session, turns: ShownTurn[]) {
  const { session_id, message_id } = forked_from ?? {}
  // Copied messages keep their times.
  const turn = turns.find(({ input }) => input && Date.parse(input.created_at) >= Date.parse(created_at))
  if (!session_id || !message_id || turn === undefined) return undefined
  const origin = { sessionId: session_id, turnId: message_id.replace('message_', 'turn_') }
  return { turn, comparison: compareLink(origin, { sessionId: id, turnId: turn.id }) }
}
