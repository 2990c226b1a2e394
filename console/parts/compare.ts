import { go } from '../router.ts'
import { organization } from '../service.ts'
import { html, signal, type VNode } from '../ui.ts'
import { compareLink, type RunPlace } from './compare-link.ts'
import { Icon } from './icon.ts'
import type { MenuItem } from './menu.ts'

type Marked = RunPlace & { label: string; organization: string }

const chosen = signal<Marked | undefined>(undefined)
/** Run that was chosen to be compared with another one. */
const marked = (): Marked | undefined => (chosen.value?.organization === organization.value ? chosen.value : undefined)

/** Entry of a run's menu: it marks the run, or compares it with the run that was marked before. */
export function compareItem({ label, ...place }: RunPlace & { label: string }): MenuItem {
  const first = marked()
  if (first === undefined || first.turnId === place.turnId) {
    const run = async () => {
      chosen.value = { ...place, label, organization: organization.value }
      return 'Now choose the other run in its menu.'
    }
    return { label: 'Compare with…', icon: 'compare', run }
  }
  const run = async () => {
    chosen.value = undefined
    go(compareLink(first, place))
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
