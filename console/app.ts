import { useEvery, useLoad } from './load.ts'
import { ActionButton, Page, Problem, Quiet } from './parts/page.ts'
import { type Resource, ResourceView } from './parts/resource.ts'
import { go, link, route } from './router.ts'
import { api, auth, chooseOrganization, identify, organization, signOut, user } from './service.ts'
import { html, useEffect, useErrorBoundary, useRef, type VNode } from './ui.ts'
import { hasUnsaved, mayLeave } from './unsaved.ts'
import { Agents } from './views/agents/agents.ts'
import { apiKeys } from './views/api-keys.ts'
import { Health } from './views/health.ts'
import { Inbox } from './views/inbox.ts'
import { llmModels } from './views/llm-models.ts'
import { llmProviders } from './views/llm-providers.ts'
import { mcpServers } from './views/mcp-servers.ts'
import { invitations, members } from './views/members.ts'
import { organizations } from './views/organizations.ts'
import { schedules } from './views/schedules.ts'
import { Sessions } from './views/sessions.ts'
import { SignIn } from './views/sign-in.ts'
import { skills } from './views/skills.ts'
import { changes } from './waiting.ts'

type NavItem = { path: string; title: string; View: () => VNode; Mark?: () => VNode | null }

// biome-ignore lint/suspicious/noExplicitAny: resources of all kinds
const resourceItem = (resource: Resource<any>): NavItem => ({
  path: resource.path,
  title: resource.title,
  View: () => html`<${ResourceView} key=${resource.path} resource=${resource} />`,
})

/** Places of the console, in the order of the navigation. The console starts at the first. */
const NAV_ITEMS: NavItem[] = [
  { path: 'agents', title: 'Agents', View: Agents },
  { path: 'sessions', title: 'Sessions', View: Sessions },
  { path: 'inbox', title: 'Inbox', View: Inbox, Mark: WaitingCount },
  resourceItem(schedules),
]
/** Rarely visited places. */
const SETTINGS: NavItem[] = [
  ...[skills, mcpServers, llmModels, llmProviders, members, invitations, organizations, apiKeys].map(resourceItem),
  { path: 'health', title: 'Health', View: Health },
]

export function App(): VNode {
  const { error } = useLoad(identify, [])
  const { value: current } = user
  const last = useRef('')
  if (current) last.current = current.id
  if (current === undefined) return html`<${Starting} error=${error} />`
  // Another organization or user starts with an empty page. Only input that was unsaved when the login ended is kept
  // for its user.
  const isKept = current !== null || (last.current !== '' && hasUnsaved())
  return html`
    ${current === null && html`<${SignIn} />`}
    ${isKept && html`<div class="frame" hidden=${current === null}><${Frame} key=${`${last.current} ${organization.value}`} /></div>`}`
}

const Starting = ({ error }: { error: unknown }): VNode =>
  html`<main id="main"><${Problem} error=${error} />${error === undefined && html`<${Quiet}>Loading…<//>`}</main>`

function Frame(): VNode {
  const [first = ''] = route.value.path
  const place = [...NAV_ITEMS, ...SETTINGS].find(({ path }) => path === first)
  const start = NAV_ITEMS[0]?.path ?? ''
  useEffect(() => {
    // A user without organizations can only create one.
    if (user.value?.organizations.length === 0 && first !== 'organizations')
      go(link('organizations', 'new'), { replace: true })
    else if (first === '') go(link(start), { replace: true })
  }, [first, user.value])
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <nav aria-label="Console">
      <div>
        <a class="brand" href=${link(start)}>Agent Session Service</a>
        <${Links} places=${NAV_ITEMS} current=${first} />
        <details key=${first} open=${isWide}>
          <summary>Settings</summary>
          <${Links} places=${SETTINGS} current=${first} />
        </details>
      </div>
      <${Account} />
    </nav>
    ${place ? html`<${Content} key=${place.path} View=${place.View} />` : first !== '' && html`<${Page} title="Nothing here"><${Quiet}>There is no such page.<//><//>`}`
}

/** Contains the failure of a view that cannot be drawn. */
function Content({ View }: Pick<NavItem, 'View'>): VNode {
  const [error, again] = useErrorBoundary()
  const { path } = route.value
  useEffect(() => {
    if (error !== undefined) again()
  }, [path.join('/')])
  if (error === undefined) return html`<${View} />`
  return html`<${Page} title="This cannot be shown">
    <${Problem} error=${error} /><button type="button" onClick=${again}>Try again</button>
  <//>`
}

/** Whether there is room to show the whole navigation. */
const isWide = matchMedia('(min-width: 45rem)').matches

const Links = ({ places, current }: { places: NavItem[]; current: string }): VNode =>
  html`<ul>${places.map(
    ({ path, title, Mark }) =>
      html`<li key=${path}><a href=${link(path)} aria-current=${path === current ? 'page' : undefined}>${title}${Mark && html`<${Mark} />`}</a></li>`,
  )}</ul>`

/** Interval between counts of waiting turns. */
const LOOK_MS = 15_000
const MAX_WAITING = 20

/** Number of turns that wait for a person. */
function WaitingCount(): VNode | null {
  const query = { status: ['waiting' as const], limit: MAX_WAITING }
  const { value = 0, refresh } = useLoad(
    async () => (await api.turns.listWaitingTurns(query)).data.length,
    [changes.value],
  )
  useEvery(LOOK_MS, refresh)
  if (value === 0) return null
  return html` <mark>${value === MAX_WAITING ? `${value}+` : value}<span class="unseen"> waiting</span></mark>`
}

/** Goes to the content without leaving the view, which the address names. */
function skip(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('h1')?.focus()
}

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
  return html`<div class="account">
    ${
      organizations.length > 1 &&
      html`<label>Organization
        <select onChange=${choose}>${organizations.map(
          ({ public_id, name: label }) =>
            html`<option value=${public_id} selected=${public_id === organization.value}>${label}</option>`,
        )}</select></label>`
    }
    ${auth.value?.mode !== 'none' && html`<span dir="auto">${name}</span><${ActionButton} run=${async () => mayLeave() && signOut()}>Sign out<//>`}
  </div>`
}
