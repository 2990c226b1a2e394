import type { Message, Takeover } from 'agent-session-client'
import { costOf } from '../../parts/cost.ts'
import { durationOf } from '../../parts/duration.ts'
import { Icon } from '../../parts/icon.ts'
import { LongText } from '../../parts/long-text.ts'
import { Markdown } from '../../parts/markdown.ts'
import { ActionButton } from '../../parts/page.ts'
import { Pictures } from '../../parts/pictures.ts'
import { byProcess, wentOn } from '../../parts/takeover.ts'
import { link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useMemo, useState, type VNode } from '../../ui.ts'
import { lookAgain } from '../../waiting.ts'
import { type Part, type ShownTurn, textOf } from './conversation.ts'
import { EditMessage } from './edit-message.ts'
import { Tool } from './tool-call.ts'
import { TurnActions } from './turn-actions.ts'
import { TurnAdvice } from './turn-error.ts'

type Props = {
  sessionId: string
  turn: ShownTurn
  version: number
  /** Address of the comparison with the run that this one repeats. */
  comparison: string | undefined
  takeovers: Takeover[] | undefined
}

/** Number of takeovers that a turn tells of. Its timeline has the others. */
const TOLD = 3

/** One turn: its message, its parts, its state and its actions. */
export function Turn({ sessionId, turn, version, comparison, takeovers }: Props): VNode {
  const [isEditing, setEditing] = useState(false)
  const cancel = async () => {
    await api.turns.cancel({ session_id: sessionId, turn_id: turn.id })
    lookAgain()
  }
  // Unchanged turns are not redrawn.
  return useMemo(
    () => html`<article class="turn" id=${turn.id}>
      ${
        turn.input &&
        (isEditing
          ? html`<${EditMessage} sessionId=${sessionId} turnId=${turn.id} message=${turn.input} onClose=${() => setEditing(false)} />`
          : html`<${Said} message=${turn.input} isSummary=${turn.isSummary} />`)
      }
      ${turn.parts.map((part) => html`<${Shown} key=${part.key} sessionId=${sessionId} part=${part} />`)}
      ${byProcess(takeovers ?? [])
        .slice(-TOLD)
        .map((one) => html`<p class="quiet outcome" key=${one.taken_over_at} dir="auto">${wentOn(one)}</p>`)}
      <div class="quiet outcome">
        <${Outcome} turn=${turn} />
        ${turn.status === 'failed' && html`<${TurnAdvice} code=${turn.errorCode} error=${turn.error ?? ''} />`}
        <a href=${link('sessions', sessionId, 'turns', turn.id)}>Timeline</a>
        ${
          ['queued', 'active', 'waiting'].includes(turn.status) &&
          html`<${ActionButton} run=${cancel} fallback=${messageBox}>${turn.status === 'queued' ? 'Remove from the queue' : 'Stop'}<//>`
        }
        <${TurnActions} sessionId=${sessionId} turn=${turn} comparison=${comparison} edit=${() => setEditing(true)} />
      </div>
    </article>`,
    [sessionId, turn, version, comparison, takeovers, isEditing],
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
  return [durationMs !== undefined && durationOf(durationMs), tokens, costUsd && costOf(costUsd)]
    .filter(Boolean)
    .join(' · ')
}

function Said({ message, isSummary = false }: { message: Message; isSummary?: boolean }): VNode {
  const text = html`<${LongText} className="typed" text=${textOf(message.content)} label="User input" /><${Pictures} content=${message.content} />`
  if (!isSummary) return html`<div class="said">${text}</div>`
  return html`<details class="quiet"><summary>Summary, which the model reads in place of what is above</summary>${text}</details>`
}

/** Says that a model call failed, in the past tense once another attempt has begun. */
function retryText({ count, error, isOver }: Extract<Part, { type: 'retry' }>): string {
  const times = count === 1 ? 'once' : `${count} times`
  return `${isOver ? `Retried ${times}` : count === 1 ? 'Retrying' : `Retrying after ${count} failures`}: ${error}`
}

function Shown({ sessionId, part }: { sessionId: string; part: Part }): VNode {
  if (part.type === 'said') return html`<${Said} message=${part.message} />`
  if (part.type === 'retry')
    return html`<p class="quiet retry"><${Icon} name="again" /> <span dir="auto">${retryText(part)}</span></p>`
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
