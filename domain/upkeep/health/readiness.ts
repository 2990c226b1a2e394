/** State of the parts that a process needs: each is `ok`, or the reason for its failure. */
type Parts = { postgres: string; redis: string; temporal: string; worker?: string; process?: 'stopping' }

/** Checks each part. */
export type Readiness = () => Promise<Parts>

/**
 * Judges whether a process can take requests. It can as long as Postgres answers and it is not stopping: messages are
 * accepted while Redis or Temporal is away, and nothing would be gained by sending them elsewhere. Returns the sentence
 * for a process that cannot.
 */
export function judgeReadiness(parts: Parts): { status: 'ready' | 'degraded' } | { sentence: string } {
  const away = Object.entries(parts).filter(([, state]) => state !== 'ok')
  if (parts.postgres !== 'ok' || parts.process === 'stopping') {
    return { sentence: `Not ready: ${away.map(([part, state]) => `${part} (${state})`).join(', ')}` }
  }
  return { status: away.length === 0 ? 'ready' : 'degraded' }
}
