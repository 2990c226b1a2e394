import type { Turn } from 'agent-session-client'
import { compareItem } from '../../parts/compare.ts'
import { confirmed } from '../../parts/dialog.ts'
import type { MenuItem } from '../../parts/menu.ts'
import { isUnfinished } from '../../parts/run-time.ts'
import { go, link, route } from '../../router.ts'
import { api, workflowAddress } from '../../service.ts'
import { lookAgain } from '../../waiting.ts'
import { unfinishedOf } from './filters.ts'

export const labelOf = ({ input_preview }: Pick<Turn, 'input_preview'>): string => input_preview || 'No text'

/** Returns the actions on a run. */
export function menuOf(run: Turn, onChange: () => void): MenuItem[] {
  const { id, session_id } = run
  const temporal = workflowAddress(run.workflow_id)
  const stop = async () => {
    const { status } = await api.turns.cancel({ session_id, turn_id: id })
    lookAgain()
    onChange()
    return status === 'no_op' ? 'It had already ended.' : 'Stopped.'
  }
  const again = async () => {
    const { session } = await api.sessions.fork({ session_id, at: id, again: true })
    go(link('sessions', session.id))
  }
  return [
    { label: 'Open timeline', icon: 'history', href: link('sessions', session_id, 'turns', id) },
    ...(temporal === undefined ? [] : [{ label: 'Open in Temporal', icon: 'link', href: temporal }]),
    compareItem({ sessionId: session_id, turnId: id, label: labelOf(run) }),
    isUnfinished(run)
      ? { label: 'Stop', icon: 'stop', isDangerous: true, question: `Stop “${labelOf(run)}”?`, run: stop }
      : { label: 'Run again', icon: 'again', run: again },
  ]
}

/** Returns the number of unfinished runs that match the address. */
export async function countUnfinished(query: URLSearchParams): Promise<number> {
  const { queued, active, waiting } = await api.turns.count(unfinishedOf(query))
  return queued + active + waiting
}

/** Stops all unfinished runs that match the address, after asking. Returns a sentence about the outcome. */
export async function stopAll(): Promise<string> {
  const { query } = route.value
  const count = await countUnfinished(query)
  if (count === 0) return 'Nothing is left to stop.'
  const agreed = await confirmed({
    title: count === 1 ? 'Stop 1 run?' : `Stop ${count.toLocaleString()} runs?`,
    text: 'Everything that matches the filters and is queued, running or waiting ends now. Answers keep what they have so far.',
    action: 'Stop',
    isDangerous: true,
  })
  if (!agreed) return ''
  const { stalled, ...filters } = unfinishedOf(query)
  const isFiltered = stalled !== undefined || Object.values(filters).some(Boolean)
  const chosen = isFiltered ? { ...filters, stalled: stalled === 'true' } : { all: true }
  let stopped = 0
  for (let isMore = true; isMore; ) {
    const { cancelled, more } = await api.turns.cancelTurnsOfSessions(chosen)
    stopped += cancelled
    if (more && cancelled === 0) throw new Error(`${stopped} stopped. Others could not be stopped now; try again.`)
    isMore = more
  }
  lookAgain()
  return `${stopped.toLocaleString()} stopped.`
}
