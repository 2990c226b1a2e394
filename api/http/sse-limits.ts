import { DomainError } from '../../domain/errors.ts'

const MAX_STREAMS = 10_000
const MAX_STREAMS_PER_SESSION = 12

/** Adds one to the count of each key. Returns a function that undoes it. */
export function count(counts: Map<string, number>, keys: string[]): () => void {
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return () => {
    for (const key of keys) {
      const left = (counts.get(key) ?? 1) - 1
      if (left === 0) counts.delete(key)
      else counts.set(key, left)
    }
  }
}

export function checkLimits(
  size: number,
  counts: Map<string, number>,
  { organizationId, sessionId }: { organizationId: string; sessionId: string | undefined },
  { maxStreams = MAX_STREAMS, maxStreamsPerOrganization }: { maxStreams?: number; maxStreamsPerOrganization: number },
): void {
  const tooMany = (what: string) =>
    new DomainError('too_many', `Too many open streams ${what}`, { retryAfterSeconds: 5 })
  if (size >= maxStreams) throw tooMany('on this server')
  if ((counts.get(organizationId) ?? 0) >= maxStreamsPerOrganization) throw tooMany('in this organization')
  if (sessionId !== undefined && (counts.get(sessionId) ?? 0) >= MAX_STREAMS_PER_SESSION)
    throw tooMany('on this session')
}
