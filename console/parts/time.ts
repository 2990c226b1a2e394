import { html, signal, type VNode } from '../ui.ts'

/** Current time, which moves every half minute. */
const now = signal(Date.now())
const TICK_MS = 30_000
setInterval(() => {
  if (!document.hidden) now.value = Date.now()
}, TICK_MS)

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** Distance from which a date says more than a number of days. */
const MAX_DAYS = 7

/** Returns a time as its distance from another one: `4 min ago`, `in 3 h`, or the date. */
export function relativeTime(at: number, from: number): string {
  const seconds = Math.round(Math.abs(from - at) / 1000)
  const isPast = at <= from
  const say = (text: string) => (isPast ? `${text} ago` : `in ${text}`)
  if (seconds < 45) return isPast ? 'just now' : 'in a moment'
  if (seconds < HOUR) return say(`${Math.max(1, Math.round(seconds / MINUTE))} min`)
  if (seconds < DAY) return say(`${Math.round(seconds / HOUR)} h`)
  if (seconds < MAX_DAYS * DAY) return say(`${Math.round(seconds / DAY)} d`)
  const year = new Date(at).getFullYear() === new Date(from).getFullYear() ? undefined : 'numeric'
  return new Date(at).toLocaleDateString(undefined, { day: 'numeric', month: 'short', year })
}

function timeIn(time: Date, zone: string | undefined): string {
  const style = { dateStyle: 'medium', timeStyle: zone === undefined ? 'medium' : 'long' } as const
  try {
    return time.toLocaleString(undefined, { ...style, timeZone: zone })
  } catch {
    // The service knows the zone, but this browser does not.
    return time.toLocaleString(undefined, style)
  }
}

/**
 * Point in time: how long ago it was, with the exact time as its title. With a time zone, or if it `isExact`, the exact
 * time is shown.
 */
export function Time(props: { at: string | null | undefined; zone?: string; isExact?: boolean }): VNode | null {
  const { at, zone, isExact = zone !== undefined } = props
  if (!at) return null
  const exact = timeIn(new Date(at), zone)
  const text = isExact ? exact : relativeTime(Date.parse(at), Math.max(now.value, Date.now()))
  return html`<time datetime=${at} title=${exact}>${text}</time>`
}
