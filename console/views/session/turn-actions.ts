import { IconCopy } from '../../parts/copy.ts'
import { Icon } from '../../parts/icon.ts'
import { Menu, type MenuItem } from '../../parts/menu.ts'
import { notifyProblem } from '../../parts/notice.ts'
import { useOneAtATime } from '../../parts/one-at-a-time.ts'
import { ActionButton } from '../../parts/page.ts'
import { link } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'
import type { ShownTurn } from './conversation.ts'
import { openFork } from './fork.ts'
import { addressOfPlace, copyItem } from './session-menu.ts'

type Props = {
  sessionId: string
  turn: ShownTurn
  /** Address of the comparison with the run that this one repeats. */
  comparison: string | undefined
  edit(): void
}

/** Text of the last answer. */
const answerOf = ({ parts }: ShownTurn): string =>
  parts.reduce((last, part) => (part.type === 'answer' && part.text !== '' ? part.text : last), '')

/** Actions on a turn: the usual ones show up under the pointer, all are in a menu. */
export function TurnActions(props: Props): VNode {
  const { sessionId, turn, edit } = props
  const { id, status } = turn
  const answer = answerOf(turn)
  const isOver = status === 'completed' || status === 'failed' || status === 'cancelled'
  const again = () => openFork(sessionId, { at: id, again: true })
  const fork = () => openFork(sessionId, { at: id })
  const mayRepeat = turn.input !== undefined && !turn.isSummary
  return html`
    ${mayRepeat && (status === 'failed' || status === 'cancelled') && html`<${ActionButton} icon="again" run=${again}>Try again<//>`}
    <${Menu} label="Actions for this turn" items=${itemsOf(props, { answer, isOver, mayRepeat, again, fork })} />
    <span class="turn-quick">
      ${answer !== '' && html`<${IconCopy} text=${answer} label="Copy the answer" />`}
      ${mayRepeat && html`<${Quick} icon="edit" label="Edit and run again" run=${edit} />`}
      ${mayRepeat && status === 'completed' && html`<${Quick} icon="again" label="Run again" run=${again} />`}
      ${isOver && html`<${Quick} icon="fork" label="Fork from here" run=${fork} />`}
    </span>`
}

/** Icon for the pointer. The menu has the same for keys and fingers. */
function Quick({ icon, label, run }: { icon: string; label: string; run(): unknown }): VNode {
  const once = useOneAtATime()
  const click = () => once(label, run).catch(notifyProblem)
  return html`<button type="button" class="ghost" tabindex="-1" aria-label=${label} title=${label} onClick=${click}><${Icon} name=${icon} /></button>`
}

type State = { answer: string; isOver: boolean; mayRepeat: boolean; again(): Promise<void>; fork(): Promise<void> }

function itemsOf({ sessionId, turn, comparison, edit }: Props, state: State): MenuItem[] {
  const { answer, isOver, mayRepeat, again, fork } = state
  const againLabel = turn.status === 'completed' ? 'Run again' : 'Try again'
  return [
    ...(answer === '' ? [] : copyItem('Copy the answer', 'copy', () => answer)),
    ...(mayRepeat ? [{ label: 'Edit and run again', icon: 'edit', run: async () => edit() }] : []),
    ...(mayRepeat && isOver ? [{ label: againLabel, icon: 'again', run: again }] : []),
    ...(isOver ? [{ label: 'Fork from here', icon: 'fork', run: fork }] : []),
    ...(comparison ? [{ label: 'Compare with the original', icon: 'compare', href: comparison }] : []),
    { label: 'Timeline', icon: 'history', href: link('sessions', sessionId, 'turns', turn.id) },
    ...copyItem('Copy link', 'link', () => addressOfPlace(`${link('sessions', sessionId)}?turn=${turn.id}`)),
  ]
}
