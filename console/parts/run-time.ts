import type { Turn } from 'agent-session-client'
import { useEvery } from '../load.ts'
import { serviceNow } from '../service.ts'
import { html, useState, type VNode } from '../ui.ts'
import { durationOf } from './duration.ts'

const TICK_MS = 1000

export const isUnfinished = ({ status }: Pick<Turn, 'status'>): boolean =>
  status === 'queued' || status === 'active' || status === 'waiting'

/** Returns how long a turn ran, or undefined while it has not both begun and ended. */
export const runMsOf = ({ started_at, finished_at }: Turn): number | undefined =>
  started_at && finished_at ? Date.parse(finished_at) - Date.parse(started_at) : undefined

/** How long a turn ran, or has run up to now. */
export function RunTime({ turn }: { turn: Turn }): VNode | string {
  const ms = runMsOf(turn)
  if (ms !== undefined) return durationOf(ms)
  return turn.started_at && isUnfinished(turn) ? html`<${Running} from=${Date.parse(turn.started_at)} />` : ''
}

function Running({ from }: { from: number }): VNode {
  const [now, setNow] = useState(serviceNow())
  useEvery(TICK_MS, () => setNow(serviceNow()))
  return html`<span class="running">${durationOf(Math.floor(Math.max(0, now - from) / 1000) * 1000)}</span>`
}
