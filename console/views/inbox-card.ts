import type { RequestedCall, Turn } from 'agent-session-client'
import { useLoad } from '../load.ts'
import { CallArguments } from '../parts/call/arguments.ts'
import { useFocusFallback } from '../parts/focus.ts'
import { titleOf } from '../parts/session-title.ts'
import { Time } from '../parts/time.ts'
import { link } from '../router.ts'
import { html, type VNode } from '../ui.ts'
import { keyOf, type Waiting } from './inbox-cards.ts'
import { type Context, readContext } from './inbox-reader.ts'
import { questionIn } from './session/asked.ts'
import { BUDGET, QUESTION } from './session/conversation.ts'
import { useFileBefore } from './session/file-before.ts'
import { WaitingCall } from './session/waiting-call.ts'

/** Turn that waits: who asks, what was said before, and its calls. */
export function Card({ turn, place, waiting }: Waiting & { waiting: Set<string> }): VNode {
  const { id, session_id, pending_tool_calls, iterations, input_preview } = turn
  const { value: context } = useLoad(() => readContext(turn), [id, iterations])
  return html`<li ref=${useFocusFallback()} id=${id} tabindex="-1">
    <header>
      <h2 dir="auto"><a href=${link('sessions', session_id)}>${place ? titleOf(place.session) : 'Untitled session'}</a></h2>
      <p class="quiet">${place?.agent && html`<span dir="auto">${place.agent}</span> · `}Asked <${Time} at=${context?.askedAt ?? turn.created_at} /></p>
    </header>
    ${input_preview && html`<p class="before user" dir="auto"><span class="label">User</span>${input_preview}</p>`}
    ${context?.said && html`<p class="before" dir="auto"><span class="label">Agent</span>${context.said}</p>`}
    ${pending_tool_calls.map((call) => html`<${Call} key=${keyOf(turn, call)} turn=${turn} call=${call} context=${context} isOver=${!waiting.has(keyOf(turn, call))} />`)}
  </li>`
}

type CallProps = { turn: Turn; call: RequestedCall; context: Context | undefined; isOver: boolean }

function Call({ turn, call, context, isOver }: CallProps): VNode {
  const { session_id: sessionId } = turn
  const { name, kind, arguments: given } = call
  const title = context?.titles.get(call.id) ?? name
  const before = useFileBefore(sessionId, call)
  const isApproval = kind === 'approval'
  const isPlain =
    name === QUESTION ||
    name === BUDGET ||
    (!isApproval && 'question' in given && questionIn(given).text === given.question)
  const asker = context?.titles.get(String(given.tool_call_id))
  return html`<section>
    ${!isPlain && html`<p>${isApproval ? 'Wants to run' : 'Needs the result of'} <strong title=${name} dir="auto">${title}</strong></p>`}
    ${!isPlain && isApproval && html`<${CallArguments} name=${name} given=${given} before=${before} />`}
    <${WaitingCall} sessionId=${sessionId} call=${{ ...call, title, asker }} isOver=${isOver} />
  </section>`
}
