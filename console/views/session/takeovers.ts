import type { Event } from 'agent-session-client'

/** Time in ms by which a run of a tool may begin after its event, and end before its result. */
const SLACK_MS = 500

/**
 * Takes the events of a session, in their order, and returns for each whether a takeover may have preceded it: a model's
 * answer begins again, a tool's result comes from a run that began after the first one, or a turn begins late, because
 * its first attempt may have been lost before any event.
 */
export function noticeTakeovers(): (event: Event) => boolean {
  /** Times of the first attempts at the steps of the turn that runs, by their spans. */
  const begun = new Map<string, number>()
  let last = 0
  return ({ type, ts, context, data }) => {
    const sinceLast = Date.parse(ts) - last
    last += sinceLast
    if (type === 'turn.started') {
      begun.clear()
      return sinceLast > SLACK_MS
    }
    const span = context?.span_id
    const before = span ? begun.get(span) : undefined
    if (!span) return false
    if (type === 'output.message.started' || type === 'tool.started') {
      begun.set(span, before ?? Date.parse(ts))
      return before !== undefined
    }
    if (type !== 'tool.completed' || before === undefined) return false
    return typeof data.duration_ms === 'number' && Date.parse(ts) - before - data.duration_ms > SLACK_MS
  }
}
