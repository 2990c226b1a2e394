import type { Session } from 'agent-session-client'
import { go, link } from '../router.ts'
import { api, organization } from '../service.ts'
import { html, signal, type VNode } from '../ui.ts'
import { Icon } from './icon.ts'
import type { MenuItem } from './menu.ts'

/** A turn and its session. */
export type RunPlace = { session_id: string; id: string }
type Marked = RunPlace & { label: string; organization: string }

/** Returns the address of the comparison of two runs. */
export const compareLink = (a: RunPlace, b: RunPlace): string =>
  `${link('compare')}?${new URLSearchParams({ a: `${a.session_id}/${a.id}`, b: `${b.session_id}/${b.id}` })}`

const chosen = signal<Marked | undefined>(undefined)
/** Run that was chosen to be compared with another one. */
const marked = (): Marked | undefined => (chosen.value?.organization === organization.value ? chosen.value : undefined)

/** Entry of a run's menu: it marks the run, or compares it with the run that was marked before. */
export function compareItem({ session_id, id, label }: RunPlace & { label: string }): MenuItem {
  const first = marked()
  if (first === undefined || first.id === id) {
    const run = async () => {
      chosen.value = { session_id, id, label, organization: organization.value }
      return 'Now choose “Compare with…” for the other run.'
    }
    return { label: 'Compare with…', icon: 'compare', run }
  }
  const run = async () => {
    chosen.value = undefined
    go(compareLink(first, { session_id, id }))
  }
  return { label: 'Compare with the marked run', icon: 'compare', run }
}

/** Says which run is marked, until another one is chosen. */
export function MarkedRun(): VNode | null {
  const first = marked()
  if (first === undefined) return null
  const forget = () => {
    chosen.value = undefined
  }
  return html`<p class="marked-run"><${Icon} name="compare" /><span class="clipped" dir="auto">Comparing “${first.label}” with the run that you choose next.</span>
    <button type="button" onClick=${forget}>Cancel</button></p>`
}

/**
 * Returns the comparison of a forked session's own first run with the run that was edited or repeated. Undefined if the
 * fork has no run of its own, or repeats none.
 */
export async function compareWithOrigin(session: Session): Promise<string | undefined> {
  const { session_id, message_id } = session.forked_from ?? {}
  if (!session_id || !message_id) return undefined
  // Turns that the fork has copied are not counted.
  const counts = await api.turns.count({ session_id: session.id })
  const { queued, active, waiting, completed, failed, cancelled } = counts
  const own = queued + active + waiting + completed + failed + cancelled
  if (own === 0) return undefined
  const { data } = await api.turns.listWaitingTurns({ session_id: session.id, limit: 1, offset: own - 1 })
  return data[0] && compareLink({ session_id, id: message_id.replace('message_', 'turn_') }, data[0])
}
