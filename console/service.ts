import { ApiError, type AuthConfigResponse, type CurrentUser, createClient } from 'agent-session-client'
import { signal } from './ui.ts'
import { forgetTexts } from './unsaved.ts'

type Options = { prefix: string; temporalUi?: { url: string; namespace: string } }
const { prefix, temporalUi }: Options = JSON.parse(
  document.querySelector<HTMLMetaElement>('meta[name=service]')?.content ?? '{}',
)
/** Address of the service, also behind a proxy: the folder of this page, and the prefix of the API's paths. */
const baseUrl = new URL(prefix.slice(1) || '.', location.href.replace(/[?#].*/, '')).href

export const auth = signal<AuthConfigResponse | undefined>(undefined)
/** Signed-in user; null if nobody has signed in, undefined until this is known. */
export const user = signal<CurrentUser | null | undefined>(undefined)

const ORGANIZATION = 'console.organization'
/** Organization that is shown. The others of the user are in `user`. */
export const organization = signal(sessionStorage.getItem(ORGANIZATION) ?? localStorage.getItem(ORGANIZATION) ?? '')

/** Reports whether the user is an owner or administrator of the organization. */
export const isAdministrator = (): boolean => {
  const { organizations = [] } = user.value ?? {}
  const role = organizations.find(({ public_id }) => public_id === organization.value)?.role
  return role === 'owner' || role === 'admin'
}

/** Shows another organization, in this tab and in tabs opened later. */
export function chooseOrganization(id: string): void {
  for (const storage of [sessionStorage, localStorage]) storage.setItem(ORGANIZATION, id)
  organization.value = id
}

/** Operations without a login: their 401 is about the credentials in the request. */
const SIGNS_IN = /\/v1\/auth\/(config|login|logout|refresh|register)\b/

/**
 * Sends a request of the client. After a 401 it refreshes the cookies and sends the request again. The tabs of a
 * browser take turns, because a refresh token can be used only once.
 */
async function send(request: Request): Promise<Response> {
  if (organization.value !== '') request.headers.set('X-Org-Id', organization.value)
  const again = request.clone()
  const response = await fetch(request)
  readClock(response)
  if (response.status !== 401 || auth.value?.mode === 'none' || SIGNS_IN.test(request.url)) return response
  return navigator.locks === undefined
    ? refreshAndSend(again)
    : navigator.locks.request('refresh', () => refreshAndSend(again))
}

/** Ignored difference of the clocks: the service's time has whole seconds, and answers take time. */
const CLOCK_TOLERANCE_MS = 2000
let clockOffsetMs = 0

function readClock({ headers }: Response): void {
  const offset = Date.parse(headers.get('Date') ?? '') - Date.now()
  if (!Number.isNaN(offset)) clockOffsetMs = Math.abs(offset) < CLOCK_TOLERANCE_MS ? 0 : offset
}

/** Returns the time of the service, in milliseconds since the epoch. */
export const serviceNow = (): number => Date.now() + clockOffsetMs

async function refreshAndSend(request: Request): Promise<Response> {
  const last = request.clone()
  const response = await fetch(request)
  if (response.status !== 401) return response
  // A refresh token can be used only once, so its answer must arrive even if the page is left.
  const refreshed = await fetch(addressOf('/v1/auth/refresh'), { ...jsonPost({}), keepalive: true })
  if (refreshed.ok) return fetch(last)
  if (refreshed.status !== 401) return refreshed
  user.value = null
  return response
}

const jsonPost = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
})

/** Returns the address of a path of the service, such as /v1/images/…. */
export const addressOf = (path: string): string => baseUrl.replace(/\/$/, '') + path

/** All operations of the service. They throw ApiError. */
export const api = createClient({ baseUrl, fetch: send })
export const sessionOf = api.session

/** Requests content that is not JSON, such as an image, or a list as `text/csv`. */
export async function fetchBlob(path: string, accept = '*/*'): Promise<Blob> {
  const response = await send(new Request(addressOf(path), { headers: { Accept: accept } }))
  if (!response.ok) throw new ApiError(`The service answered ${response.status}`, response)
  return response.blob()
}

/** Maximum number of organizations to search for a resource. */
const MAX_ORGANIZATIONS = 20

/**
 * Reads a resource. If it belongs to another organization of the user, as after following somebody's link, this
 * organization is shown.
 */
export async function readAnywhere<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    const others = user.value?.organizations.filter(({ public_id }) => public_id !== organization.value) ?? []
    for (const { public_id } of others.slice(0, MAX_ORGANIZATIONS)) {
      const { ok } = await fetch(addressOf(path), { headers: { 'X-Org-Id': public_id } })
      if (!ok) continue
      // All views start over.
      chooseOrganization(public_id)
      break
    }
    throw error
  }
}

/** Reads the signed-in user. */
export async function identify(): Promise<void> {
  const configured = auth.value ?? api.auth.getAuthConfig()
  try {
    // Both are asked for at once.
    const known = api.auth.getCurrentUser()
    known.catch(() => {})
    auth.value = await configured
    accept(await known)
  } catch (error) {
    // The user is no longer a member of the organization.
    if (organization.value !== '' && error instanceof ApiError && error.status === 404) {
      organization.value = ''
      return identify()
    }
    if (!(error instanceof ApiError) || error.status !== 401) throw error
    user.value = null
  }
}

let lastUser: string | undefined

/** Shows the user's organization: the chosen one, or else the first. */
function accept(known: CurrentUser): void {
  // What the page remembers belongs to the user before.
  if (lastUser !== undefined && lastUser !== known.id) {
    forgetTexts()
    location.reload()
  }
  lastUser = known.id
  const ids = known.organizations.map(({ public_id }) => public_id)
  if (!ids.includes(organization.value)) organization.value = ids[0] ?? ''
  user.value = known
}

export async function signOut(): Promise<void> {
  await api.auth.logout().catch((error: unknown) => {
    // The user is no longer signed in.
    if (!(error instanceof ApiError) || error.status !== 401) throw error
  })
  forgetTexts()
  user.value = null
  // Nothing of the user stays in the page.
  location.reload()
}

/** Returns the address of a workflow in the Temporal UI, or undefined without one. */
export const workflowAddress = (workflowId: string): string | undefined =>
  temporalUi && `${temporalUi.url}/namespaces/${encodeURIComponent(temporalUi.namespace)}/workflows/${workflowId}`

/** Returns the sentence of an error. */
export function sentenceOf(error: unknown): string {
  if (error instanceof ApiError) return error.message
  if (error instanceof TypeError) return 'The service cannot be reached.'
  return error instanceof Error ? error.message : String(error)
}
