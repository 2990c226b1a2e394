import type Router from '@koa/router'
import { APPLY_THEME, readJoinStyle, sourceOf } from '../console/site.ts'
import { addPage } from './page.ts'

const MARK = `<svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><rect class="mark-ground" width="24" height="24" rx="6"/><path d="M5 7.5h10M5 12h4M13 12h6M9 16.5h10"/></svg>`

const htmlFor = (hasConsole: boolean) => `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Join an organization</title>
  <script>${APPLY_THEME}</script>
  <link rel="stylesheet" href="join/style.css">
</head>
<body>
  <main class="sign-in">
    <p class="brand">${MARK}Agent Sessions</p>
    <div class="sign-in-card">
      <h1>Join an organization</h1>
      <p id="about" class="quiet">You were invited to an organization of this service, to see its agents and sessions.</p>
      <form class="form" hidden>
        <div class="field" id="name"><label>Name <input name="name" autocomplete="name"></label></div>
        <div class="field"><label>E-mail <input name="email" type="email" autocomplete="username" required></label></div>
        <div class="field"><label>Password <input name="password" type="password" required></label></div>
        <button id="enter" class="primary"></button>
      </form>
      <output></output>
      <button id="join" class="primary" hidden>Join</button>${hasConsole ? '\n      <p id="console" hidden><a class="button primary" href="console">Open the console</a></p>' : ''}
      <p id="other" class="quiet" hidden><button type="button" class="plain" id="switch"></button></p>
      <div id="providers" class="providers" hidden></div>
    </div>
  </main>
  <script src="join/start.js"></script>
</body>
</html>
`

/** Script of the page. It keeps the token while the browser is at an identity provider, and out of its history. */
const scriptFor = (prefix: string) => `
const api = '${prefix.slice(1)}${prefix === '' ? '' : '/'}v1/'
const find = (selector) => document.querySelector(selector)
const show = (text, className = 'problem') => Object.assign(find('output'), { className, textContent: text })
const token = location.hash.slice(1) || sessionStorage.getItem('invitation') || ''
sessionStorage.setItem('invitation', token)
history.replaceState(null, '', location.pathname)

async function send(method, path, body) {
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(api + path, { method, headers, body: body && JSON.stringify(body) })
  return { status: answer.status, ...(await answer.json()) }
}

/** Sends a request again after its login has been renewed. */
async function sendSigned(method, path, body) {
  const answer = await send(method, path, body)
  if (answer.status !== 401 || (await send('POST', 'auth/refresh', {})).status !== 200) return answer
  return send(method, path, body)
}

/** Asks a user who has signed in before to join, and others to sign in. */
async function start() {
  const me = await sendSigned('GET', 'auth/me')
  if (me.status !== 200) return signIn()
  find('#join').hidden = false
  if (me.email) show('You are signed in as ' + (me.name || me.email) + '.', 'quiet')
}

async function join() {
  const answer = await sendSigned('POST', 'orgs/join', { token })
  if (answer.status === 401) return signIn()
  if (answer.status === 200) welcome(answer)
  if (answer.status === 200) show('You are now a member of ' + answer.name + '.', '')
  else show(answer.error)
}

/** Opens the console, which then shows this organization. */
function welcome({ id }) {
  sessionStorage.removeItem('invitation')
  for (const selector of ['#join', '#about', 'form', '#other', '#providers']) find(selector).hidden = true
  if (!find('#console')) return
  for (const storage of [sessionStorage, localStorage]) storage.setItem('console.organization', id)
  find('#console').hidden = false
}

async function signIn() {
  const config = await send('GET', 'auth/config')
  find('#join').hidden = true
  find('form').hidden = !config.password_auth_enabled
  find('#other').hidden = !(config.signup_enabled && config.password_auth_enabled)
  find('#providers').hidden = config.oauth_providers.length === 0
  find('#providers').replaceChildren(...config.oauth_providers.map((provider) => Object.assign(document.createElement('a'), {
    className: 'button',
    href: api + 'auth/oauth/' + provider + '?return_to=' + encodeURIComponent(location.pathname),
    textContent: 'Continue with ' + provider,
  })))
  choose(config.signup_enabled)
}

/** Asks for a new account, or for the account that the user has. */
function choose(isNew) {
  find('#name').hidden = !isNew
  find('#enter').value = isNew ? 'auth/register' : 'auth/login'
  find('#enter').textContent = isNew ? 'Create an account and join' : 'Sign in and join'
  find('#switch').textContent = isNew ? 'I have an account' : 'Create an account'
  find('[name=password]').autocomplete = isNew ? 'new-password' : 'current-password'
  find('[name=name]').required = isNew
  show('')
}

find('#join').addEventListener('click', join)
find('#switch').addEventListener('click', () => choose(find('#enter').value === 'auth/login'))
find('form').addEventListener('submit', async (event) => {
  event.preventDefault()
  const answer = await send('POST', event.submitter.value, Object.fromEntries(new FormData(event.target)))
  if (answer.status >= 400) return show(answer.error)
  // This is who the user is now, also if the invitation is of no use.
  for (const selector of ['form', '#other', '#providers']) find(selector).hidden = true
  find('#join').hidden = false
  await join()
})
start()
`

const policy = `default-src 'none'; script-src 'self' ${sourceOf(APPLY_THEME)}; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'`

/**
 * Serves the page to which the address of an invitation leads. The token is in the address's fragment, which reaches no
 * server; the page sends it when its user has signed in and agreed.
 */
export function addJoinPage(router: Router, prefix: string, hasConsole: boolean): void {
  addPage(router, 'join', { html: htmlFor(hasConsole), script: scriptFor(prefix), style: readJoinStyle(), policy })
}
