import { useLoad } from './load.ts'
import { isNotifying, notifyOf, seeWaiting } from './notifications.ts'
import { api } from './service.ts'
import { html, useEffect, useRef, type VNode } from './ui.ts'
import { changes, waitingCount } from './waiting.ts'

/** Interval between counts of waiting turns. A hidden page counts them only to notify its user. */
const LOOK_MS = 15_000
const MAX_SHOWN = 99
const status = ['waiting' as const]

/** Number of turns that wait for a person. The titles of pages have it, too. */
export function WaitingCount(): VNode | null {
  const { value, refresh } = useLoad(look, [changes.value, isNotifying.value])
  const latest = useRef(refresh)
  latest.current = refresh
  useEffect(() => {
    const again = () => (document.hidden && !isNotifying.value) || latest.current()
    const timer = setInterval(again, LOOK_MS)
    document.addEventListener('visibilitychange', again)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', again)
      waitingCount.value = 0
    }
  }, [])
  useEffect(() => {
    if (value !== undefined) waitingCount.value = value.waiting
  }, [value])
  const count = waitingCount.value
  if (count === 0) return null
  return html` <mark>${count > MAX_SHOWN ? `${MAX_SHOWN}+` : count}<span class="unseen"> waiting</span></mark>`
}

/** Returns a new object each time: others may have set the count since. */
async function look(): Promise<{ waiting: number }> {
  if (document.hidden && isNotifying.value) {
    const { data } = await api.turns.listWaitingTurns({ status, limit: 100 })
    await notifyOf(data)
    return { waiting: data.length }
  }
  seeWaiting()
  return api.turns.count({ status })
}
