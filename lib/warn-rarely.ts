const QUIET_MS = 10_000
const MAX_MESSAGES = 1000
const MAX_REASON_LENGTH = 300

type WarningLog = { warn(fields: object, message: string): void }

/** Time of the latest line with each message, per log, and the number of lines left out since. */
const latest = new WeakMap<WarningLog, Map<string, { at: number; repeated: number }>>()

/**
 * Logs a warning unless the log had one with the same message within the last 10 s: a failure that is made good, such
 * as an outage, concerns many turns and streams at once. `repeated` is the number of warnings left out since the
 * previous line. `message` must be a constant, as it names the cause. A text in `err` becomes one short line.
 */
export function warnRarely(log: WarningLog, fields: { err: unknown; [field: string]: unknown }, message: string): void {
  const messages = latest.get(log) ?? new Map<string, { at: number; repeated: number }>()
  latest.set(log, messages)
  const previous = messages.get(message)
  const at = performance.now()
  if (previous !== undefined && at - previous.at < QUIET_MS) {
    previous.repeated++
    return
  }
  if (messages.size >= MAX_MESSAGES) messages.clear()
  messages.set(message, { at, repeated: 0 })
  const repeated = previous?.repeated ?? 0
  log.warn({ ...fields, err: toOneLine(fields.err), ...(repeated > 0 && { repeated }) }, message)
}

const toOneLine = (reason: unknown): unknown =>
  typeof reason === 'string' ? reason.replaceAll(/\s+/g, ' ').trim().slice(0, MAX_REASON_LENGTH).toWellFormed() : reason
