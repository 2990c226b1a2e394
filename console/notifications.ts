import type { Turn } from 'agent-session-client'
import { readAgentName } from './parts/agent-select.ts'
import { plain } from './parts/plain.ts'
import { link } from './router.ts'
import { api } from './service.ts'
import { signal } from './ui.ts'

const CHOICE = 'console.notify'
/** Maximum number of notifications at once. */
const MAX_AT_ONCE = 3

/** Reports whether pages can notify. On Android, Chrome lets only service workers do so. */
export const canNotify = (): boolean => 'Notification' in globalThis && !/Android.+Chrome/.test(navigator.userAgent)

/** Whether the user has asked for notifications, and the browser shows them. */
export const isNotifying = signal(
  canNotify() && Notification.permission === 'granted' && localStorage.getItem(CHOICE) === 'on',
)

/** Switches notifications on or off. Throws if the browser does not show them. */
export async function switchNotifications(): Promise<void> {
  if (!isNotifying.value && (await Notification.requestPermission()) !== 'granted')
    throw new Error('Your browser blocks notifications of this site. Allow them in its settings.')
  isNotifying.value = !isNotifying.value
  localStorage.setItem(CHOICE, isNotifying.value ? 'on' : 'off')
}

/** Turns that waited when the page was last looked at. A turn may come to wait again, in a later step. */
let known: Set<string> | undefined
const keyOf = ({ id, iterations }: Turn): string => `${id} ${iterations}`

/** Forgets the turns that are known to wait: the user sees the page. */
export const seeWaiting = (): void => {
  known = undefined
}

/** Notifies of the turns that have come to wait since the page was hidden. The first call only takes them in. */
export async function notifyOf(turns: Turn[]): Promise<void> {
  const before = known
  known = new Set(turns.map(keyOf))
  const fresh = before === undefined ? [] : turns.filter((turn) => !before.has(keyOf(turn)))
  await Promise.all(fresh.slice(0, MAX_AT_ONCE).map(show))
  if (fresh.length > MAX_AT_ONCE) open(`${fresh.length - MAX_AT_ONCE} more are waiting for you`, '', link('inbox'))
}

/** Shows a notification of a turn: its session and agent, never what it asks. */
async function show(turn: Turn): Promise<void> {
  const { session_id, agent_id } = turn
  const [session, agent] = await Promise.all([
    api.sessions.get({ session_id }).catch(() => undefined),
    agent_id ? readAgentName(agent_id).catch(() => undefined) : undefined,
  ])
  open(
    session?.title ?? 'Untitled session',
    `${agent ?? 'An agent'} is waiting for you`,
    link('sessions', session_id),
    keyOf(turn),
  )
}

/** Other tabs of the console replace a notification with the same tag. */
function open(title: string, body: string, to: string, tag = to): void {
  try {
    const notification = new Notification(plain(title), { body: plain(body), tag })
    notification.onclick = () => {
      window.focus()
      // As by a link, which asks about unsaved input.
      location.hash = to
      notification.close()
    }
  } catch {
    // The browser lets no page notify. The inbox has its number all the same.
  }
}
