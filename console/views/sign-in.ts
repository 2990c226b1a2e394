import { Form } from '../parts/form.ts'
import { Page } from '../parts/page.ts'
import { rememberPlace } from '../router.ts'
import { addressOf, api, auth, identify } from '../service.ts'
import { html, useState, type VNode } from '../ui.ts'

const EMAIL = { name: 'email', label: 'E-mail', kind: 'text', isRequired: true, autocomplete: 'username' } as const
const PASSWORD = {
  name: 'password',
  label: 'Password',
  kind: 'secret',
  isRequired: true,
  autocomplete: 'current-password',
} as const
const NAME = { name: 'name', label: 'Name', kind: 'text', isRequired: true, autocomplete: 'name' } as const

/** Address to which an identity provider returns the browser. */
const returnTo = encodeURIComponent(location.pathname)

export function View(): VNode {
  const [isNew, setNew] = useState(false)
  const { password_auth_enabled, signup_enabled, oauth_providers = [] } = auth.value ?? {}
  const signIn = async (values: Record<string, unknown>) => {
    const { email, password, name } = values as Record<'email' | 'password' | 'name', string>
    if (isNew) await api.auth.register({ email, password, name })
    else await api.auth.login({ email, password })
    await identify()
  }
  return html`<${Page} title=${isNew ? 'Register' : 'Sign in'}>
    ${password_auth_enabled && html`<${Form} key=${isNew} fields=${isNew ? [EMAIL, PASSWORD, NAME] : [EMAIL, PASSWORD]} action=${isNew ? 'Register' : 'Sign in'} onSubmit=${signIn} isFleeting />`}
    ${
      signup_enabled &&
      html`<p><button type="button" class="plain" onClick=${() => setNew(!isNew)}>
        ${isNew ? 'Sign in instead' : 'Create an account'}</button></p>`
    }
    ${oauth_providers.map(
      (provider) =>
        html`<p key=${provider}><a class="button" onClick=${rememberPlace} href=${addressOf(`/v1/auth/oauth/${provider}?return_to=${returnTo}`)}>Sign in with ${provider}</a></p>`,
    )}
  <//>`
}
