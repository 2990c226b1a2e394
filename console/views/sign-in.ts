import { Form } from '../parts/form.ts'
import { Icon } from '../parts/icon.ts'
import { Mark } from '../parts/mark.ts'
import { rememberPlace } from '../router.ts'
import { addressOf, api, auth, identify } from '../service.ts'
import { html, useEffect, useState, type VNode } from '../ui.ts'

const NAME = { name: 'name', label: 'Name', kind: 'text', isRequired: true, autocomplete: 'name' } as const
const EMAIL = { name: 'email', label: 'E-mail', kind: 'text', isRequired: true, autocomplete: 'username' } as const
const PASSWORD = {
  name: 'password',
  label: 'Password',
  kind: 'secret',
  isRequired: true,
  autocomplete: 'current-password',
} as const
const NEW_PASSWORD = { ...PASSWORD, autocomplete: 'new-password', hint: 'At least 8 characters.' } as const

/** Address to which an identity provider returns the browser. */
const returnTo = encodeURIComponent(location.pathname)

export function View(): VNode {
  const [isNew, setNew] = useState(false)
  const { password_auth_enabled, signup_enabled, oauth_providers = [] } = auth.value ?? {}
  const title = isNew ? 'Create an account' : 'Sign in'
  useEffect(() => {
    document.title = `${title} · Console`
    document.querySelector<HTMLElement>('.sign-in h1')?.focus()
  }, [title])
  const signIn = async (values: Record<string, unknown>) => {
    const { email, password, name } = values as Record<'email' | 'password' | 'name', string>
    if (isNew) await api.auth.register({ email, password, name })
    else await api.auth.login({ email, password })
    await identify()
  }
  return html`<main id="main" class="sign-in">
    <p class="brand"><${Mark} />Agent Sessions</p>
    <div class="sign-in-card">
      <h1 tabindex="-1">${title}</h1>
      ${password_auth_enabled && html`<${Form} key=${isNew} fields=${isNew ? [NAME, EMAIL, NEW_PASSWORD] : [EMAIL, PASSWORD]} action=${title} onSubmit=${signIn} isFleeting />`}
      ${
        signup_enabled &&
        html`<p class="quiet">${isNew ? 'You have an account already? ' : 'New here? '}
          <button type="button" class="plain" onClick=${() => setNew(!isNew)}>${isNew ? 'Sign in instead' : 'Create an account'}</button></p>`
      }
      ${
        oauth_providers.length > 0 &&
        html`<div class="providers">${oauth_providers.map(
          (provider) =>
            html`<a key=${provider} class="button" onClick=${rememberPlace} href=${addressOf(`/v1/auth/oauth/${provider}?return_to=${returnTo}`)}><${Icon} name="link" />Continue with ${nameOf(provider)}</a>`,
        )}</div>`
      }
    </div>
  </main>`
}

/** Returns the name of an identity provider, whose id an operator has chosen. */
const nameOf = (provider: string): string =>
  ({ github: 'GitHub', gitlab: 'GitLab', oidc: 'single sign-on' })[provider] ??
  provider.charAt(0).toUpperCase() + provider.slice(1)
