import type Router from '@koa/router'
import { addPage } from './page.ts'

const htmlFor = (hasConsole: boolean) => `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Join an organization</title>
  <link rel="stylesheet" href="join/style.css">
</head>
<body>
  <h1>Join an organization</h1>
  <p>You were invited to an organization of this service. Join it to see its agents and sessions.</p>
  <p><button id="join">Join</button> <output></output></p>${hasConsole ? '\n  <p id="console" hidden><a href="console">Open the console</a></p>' : ''}
  <form hidden>
    <p><label>E-mail <input name="email" type="email" autocomplete="username" required></label></p>
    <p><label>Password <input name="password" type="password" autocomplete="current-password" required></label></p>
    <p><label>Name <input name="name" autocomplete="name"></label> (to register)</p>
    <p><button value="auth/login">Sign in</button> <button value="auth/register">Register</button></p>
  </form>
  <p id="providers" hidden></p>
  <script src="join/start.js"></script>
</body>
</html>
`

/** Script of the page. It keeps the token while the browser is at an identity provider, and out of its history. */
const scriptFor = (prefix: string) => `
const api = '${prefix.slice(1)}${prefix === '' ? '' : '/'}v1/'
const find = (selector) => document.querySelector(selector)
const show = (text) => { find('output').textContent = text }
const token = location.hash.slice(1) || sessionStorage.getItem('invitation') || ''
sessionStorage.setItem('invitation', token)
history.replaceState(null, '', location.pathname)

async function post(path, body) {
  const headers = { 'Content-Type': 'application/json' }
  const answer = await fetch(api + path, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, ...(await answer.json()) }
}

async function join() {
  let answer = await post('orgs/join', { token })
  if (answer.status === 401 && (await post('auth/refresh', {})).status === 200) answer = await post('orgs/join', { token })
  if (answer.status === 401) return signIn()
  if (answer.status === 200) welcome(answer)
  show(answer.status === 200 ? 'You are now a member of ' + answer.name + '.' : answer.error)
}

/** Opens the console, which then shows this organization. */
function welcome({ id }) {
  sessionStorage.removeItem('invitation')
  find('#join').hidden = true
  if (!find('#console')) return
  for (const storage of [sessionStorage, localStorage]) storage.setItem('console.organization', id)
  find('#console').hidden = false
}

async function signIn() {
  show('Sign in first.')
  const config = await (await fetch(api + 'auth/config')).json()
  find('form').hidden = !config.password_auth_enabled
  find('[value="auth/register"]').hidden = !config.signup_enabled
  find('#providers').hidden = config.oauth_providers.length === 0
  find('#providers').replaceChildren('Sign in with ', ...config.oauth_providers.flatMap((provider) => {
    const link = document.createElement('a')
    link.href = api + 'auth/oauth/' + provider + '?return_to=' + encodeURIComponent(location.pathname)
    link.textContent = provider
    return [link, ' ']
  }))
}

find('#join').addEventListener('click', join)
find('form').addEventListener('submit', async (event) => {
  event.preventDefault()
  const answer = await post(event.submitter.value, Object.fromEntries(new FormData(event.target)))
  if (answer.status >= 400) return show(answer.error)
  for (const part of [find('form'), find('#providers')]) part.hidden = true
  await join()
})
`

const style = `:root { color-scheme: light dark; font: 15px / 1.5 system-ui, sans-serif }
body { margin: 0 auto; max-width: 32rem; padding: 2rem 1rem }
label, input { display: block }
button, input { border: 1px solid GrayText; border-radius: 6px; font: inherit; padding: 0.35rem 0.7rem }
input { box-sizing: border-box; width: 100% }
#join { background: light-dark(#1a5fb4, #8ab8f2); border: 0; color: light-dark(#fff, #10151a) }
`

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'"

/**
 * Serves the page to which the address of an invitation leads. The token is in the address's fragment, which reaches no
 * server; the page sends it when its user has signed in and agreed.
 */
export function addJoinPage(router: Router, prefix: string, hasConsole: boolean): void {
  addPage(router, 'join', { html: htmlFor(hasConsole), script: scriptFor(prefix), style, policy })
}
