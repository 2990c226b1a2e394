import { OutgoingError } from './outgoing-error.ts'

/** Converts an error of `fetch`, which hides the actual failure in the cause of a TypeError. */
export function connectionError(host: string, error: unknown): unknown {
  const cause = error instanceof TypeError ? error.cause : undefined
  if (cause instanceof OutgoingError) return cause
  if (typeof cause !== 'object' || cause === null) return error
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : ''
  if (/^(ENOTFOUND|EAI_|ENODATA)/.test(code)) {
    return new OutgoingError('unknown_host', `There is no host ${host}.`, { cause })
  }
  const detail = code === '' ? '' : ` (${code})`
  return new OutgoingError('unreachable', `The connection to ${host} failed${detail}.`, { cause })
}
