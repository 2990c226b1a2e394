import { SearchButton } from './overlays.ts'
import { Icon } from './parts/icon.ts'
import { wantsToLeave } from './parts/leave.ts'
import { Mark } from './parts/mark.ts'
import { Menu } from './parts/menu.ts'
import { GROUPS } from './places.ts'
import { go, link, route } from './router.ts'
import { auth, chooseOrganization, organization, signOut, user } from './service.ts'
import { chooseTheme, type Theme, theme } from './theme.ts'
import { html, useEffect, useState, type VNode } from './ui.ts'
import { mayLeave } from './unsaved.ts'
import { WaitingCount } from './waiting-count.ts'

/** Navigation of the console, at the left of wide pages and behind a button on narrow ones. */
export function Navigation({ current }: { current: string }): VNode {
  const [isOpen, setOpen] = useState(false)
  const path = route.value.path.join('/')
  useEffect(() => setOpen(false), [path])
  return html`<nav class="side" aria-label="Console">
    <div class="side-head">
      <a class="brand" href=${link('agents')}><${Mark} /><span>Agent Sessions</span></a>
      ${user.value && html`<${SearchButton} />`}
      <button type="button" class="menu-button" aria-expanded=${isOpen} aria-controls="places" onClick=${() => setOpen(!isOpen)}><${Icon} name="menu" />Menu</button>
    </div>
    <div id="places" class="places" data-open=${isOpen}>
      ${GROUPS.map(
        ({ title, places }) =>
          html`<div key=${title} class="group"><h2>${title}</h2><ul>${places
            .filter(({ under }) => under === undefined)
            .map(
              ({ path: at, title: name, icon }) =>
                html`<li key=${at}><a href=${link(at)} aria-current=${at === current ? 'page' : undefined}><${Icon} name=${icon} />${name}${at === 'inbox' && user.value && html`<${WaitingCount} />`}</a></li>`,
            )}</ul></div>`,
      )}
      <${Account} />
    </div>
  </nav>`
}

const THEMES: { value: Theme; label: string; icon: string }[] = [
  { value: '', label: 'Colours of the system', icon: 'system' },
  { value: 'light', label: 'Light', icon: 'sun' },
  { value: 'dark', label: 'Dark', icon: 'moon' },
]

function Account(): VNode {
  const { name = '', organizations = [] } = user.value ?? {}
  const choose = (event: Event) => {
    const select = event.target as HTMLSelectElement
    if (!mayLeave()) {
      select.value = organization.value
      return
    }
    chooseOrganization(select.value)
    // The current view belongs to the previous organization.
    const [place = ''] = route.value.path
    go(link(place))
  }
  const items = [
    ...THEMES.map(({ value, label, icon }) => ({ label, icon, run: async () => chooseTheme(value) })),
    ...(user.value && auth.value?.mode !== 'none'
      ? [{ label: 'Sign out', icon: 'link', run: async () => (await wantsToLeave()) && signOut() }]
      : []),
  ]
  const icon = THEMES.find(({ value }) => value === theme.value)?.icon
  return html`<div class="account">
    ${
      organizations.length > 1 &&
      html`<label>Organization
        <select onChange=${choose}>${organizations.map(
          ({ public_id, name: label }) =>
            html`<option value=${public_id} selected=${public_id === organization.value}>${label}</option>`,
        )}</select></label>`
    }
    <div class="account-row">
      ${auth.value?.mode !== 'none' && html`<span class="account-name" dir="auto" title=${name}>${name}</span>`}
      <${Menu} label="Colours and account" icon=${icon} items=${items} />
    </div>
  </div>`
}
