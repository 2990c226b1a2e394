import { useLoad } from './load.ts'
import { Navigation } from './navigation.ts'
import { Overlays } from './overlays.ts'
import { Questions } from './parts/dialog.ts'
import { Lazy, Loading } from './parts/lazy.ts'
import { Notices } from './parts/notice.ts'
import { Page, Problem, Quiet } from './parts/page.ts'
import { Again } from './parts/skeleton.ts'
import { PLACES, type Place } from './places.ts'
import { go, link, route } from './router.ts'
import { identify, organization, user } from './service.ts'
import { html, useEffect, useErrorBoundary, useRef, type VNode } from './ui.ts'
import { hasUnsaved } from './unsaved.ts'

const loadSignIn = () => import('./views/sign-in.ts')

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
    ${current === null && html`<${Lazy} title="Sign in" load=${loadSignIn} />`}
    ${isKept && html`<div class="frame" hidden=${current === null}><${Frame} key=${`${last.current} ${organization.value}`} /></div>`}
    <${Questions} /><${Notices} />`
}

/** Place where the console starts. */
const START = 'agents'

/** The frame before it is known who the user is. */
function Starting({ error }: { error: unknown }): VNode {
  const [first = START] = route.value.path
  const title = PLACES.find(({ path }) => path === first)?.title ?? 'Console'
  return html`<div class="frame"><${Skip} /><${Navigation} current=${first} />
    ${error === undefined ? html`<${Loading} title=${title} />` : html`<${Page} title=${title}><${Problem} error=${error} /><${Again} /><//>`}</div>`
}

function Frame(): VNode {
  const [first = ''] = route.value.path
  const place = PLACES.find(({ path }) => path === (first || START))
  useEffect(() => {
    // A user without organizations can only create one.
    if (user.value?.organizations.length === 0 && first !== 'organizations')
      go(link('organizations', 'new'), { replace: true })
    else if (first === '') go(link(START), { replace: true })
  }, [first, user.value])
  return html`
    <${Skip} />
    <${Navigation} current=${place?.under ?? first} />
    ${place ? html`<${Content} key=${place.path} place=${place} />` : html`<${Page} title="Nothing here"><${Quiet}>There is no such page.<//><//>`}
    <${Overlays} />`
}

const Skip = (): VNode => html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>`

/** Contains the failure of a view that cannot be drawn. */
function Content({ place }: { place: Place }): VNode {
  const [error, again] = useErrorBoundary()
  const { path } = route.value
  useEffect(() => {
    if (error !== undefined) again()
  }, [path.join('/')])
  if (error === undefined) return html`<${Lazy} title=${place.title} load=${place.load} />`
  return html`<${Page} title="This cannot be shown">
    <${Problem} error=${error} /><button type="button" onClick=${again}>Try again</button>
  <//>`
}

/** Goes to the content without leaving the view, which the address names. */
function skip(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('h1')?.focus()
}
