import { continueAsNew, setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import { deliver } from './activities.ts'
import type { LaneInput } from './messages.ts'
import { createResumeSignal } from './resume-signal.ts'

/** Limit on a run's history, as of a turn. */
const MAX_HISTORY_EVENTS = 2000

/**
 * Makes the deliveries of a webhook about one session, one after the other, until none is pending. A signal has it read the
 * record before its next attempt is due.
 */
export async function webhook(input: LaneInput): Promise<void> {
  const news = createResumeSignal()
  for (;;) {
    news.forget()
    const delivered = await deliver(input)
    // A delivery that was added just now has only sent the signal.
    if (delivered.outcome === 'done' && !news.hasCome()) return
    if (delivered.outcome === 'retry') {
      const at = new Date(Date.now() + delivered.afterMs).toISOString()
      setCurrentDetails(`the next attempt is made at ${at}`)
      await news.next(delivered.afterMs)
      setCurrentDetails('')
    }
    const { continueAsNewSuggested, historyLength } = workflowInfo()
    if (continueAsNewSuggested || historyLength > MAX_HISTORY_EVENTS) await continueAsNew<typeof webhook>(input)
  }
}
