import type { EventType } from '../../../contract/events.ts'
import type { ToolRequest } from './face.ts'

/** Events that are worth a word to a waiting client. */
export const PROGRESS_TYPES = ['reason.started', 'reason.retrying', 'tool.started'] as const satisfies EventType[]

const NAME_CHARACTERS = 100

/** Says in a few words what an event means; undefined for an event that means nothing to a waiting client. */
export function wordsOf({ type, line }: { type: string; line: string }): string | undefined {
  if (type === 'reason.started') return 'thinking'
  if (type === 'reason.retrying') return 'the model failed, asking it again'
  if (type !== 'tool.started') return undefined
  // The service's own event, checked when it was written.
  const { data } = JSON.parse(line) as { data: { tool_call: { name: string }; display_name?: string | null } }
  return `running ${data.display_name ?? data.tool_call.name}`.slice(0, NAME_CHARACTERS)
}

const INTERVAL_MS = 1000

export type Progress = { report(words: string): void; end(): void }

/** Sends the newest words at most once a second, with a number that grows. Nothing is sent after `end`. */
export function createProgress(send: (progress: number, message: string) => void, intervalMs = INTERVAL_MS): Progress {
  let count = 0
  let sentAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let newest = ''
  const flush = () => {
    timer = undefined
    sentAt = performance.now()
    send(count, newest)
  }
  return {
    report(words) {
      count++
      newest = words
      if (timer !== undefined) return
      const restMs = sentAt + intervalMs - performance.now()
      if (restMs <= 0) flush()
      else timer = setTimeout(flush, restMs)
    },
    end: () => clearTimeout(timer),
  }
}

/** Returns the progress of a request, undefined when its client has not asked for it. */
export function progressOf({ _meta, notify }: ToolRequest): Progress | undefined {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return undefined
  return createProgress((progress, message) => {
    // The client may have gone.
    notify({ method: 'notifications/progress', params: { progressToken, progress, message } }).catch(() => {})
  })
}
