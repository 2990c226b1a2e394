import { DomainError } from '../../domain/errors.ts'
import { newestOfLargest } from '../../lib/newest-of-largest.ts'

const MAX_STREAMS = 10_000
const MAX_STREAMS_PER_SESSION = 12

type Limits = { maxStreams?: number; maxStreamsPerOrganization: number }
/** `cut` ends the stream where another owner needs its place. */
type Taker = { owner: string; sessionId: string | undefined; cut(): void }

/** Places for the streams of a process, of each owner and of each session. */
export type StreamPlaces = {
  /**
   * Takes a place. Returns a function that gives it back. Throws `too_many`. Where the process is full, the newest stream
   * of the largest owner is cut off, or this one refused if it is that.
   */
  take(taker: Taker): () => void
}

export function createStreamPlaces({ maxStreams = MAX_STREAMS, maxStreamsPerOrganization }: Limits): StreamPlaces {
  const byOwner = new Map<string, Set<Taker>>()
  const bySession = new Map<string, number>()
  let size = 0

  const leave = (taker: Taker) => {
    const { owner, sessionId } = taker
    const own = byOwner.get(owner)
    if (!own?.delete(taker)) return
    size--
    if (own.size === 0) byOwner.delete(owner)
    const left = sessionId === undefined ? 0 : (bySession.get(sessionId) ?? 1) - 1
    if (sessionId !== undefined && left === 0) bySession.delete(sessionId)
    else if (sessionId !== undefined) bySession.set(sessionId, left)
  }
  const makeRoom = (owner: string) => {
    if (size < maxStreams) return
    const newest = newestOfLargest(byOwner, owner)
    if (newest === undefined) throw tooMany('on this server')
    leave(newest)
    newest.cut()
  }
  return {
    take: (taker) => {
      const { owner, sessionId } = taker
      const own = byOwner.get(owner) ?? new Set()
      const ofSession = sessionId === undefined ? 0 : (bySession.get(sessionId) ?? 0)
      if (own.size >= maxStreamsPerOrganization) throw tooMany('in the organizations of this owner')
      if (ofSession >= MAX_STREAMS_PER_SESSION) throw tooMany('on this session')
      makeRoom(owner)
      size++
      byOwner.set(owner, own.add(taker))
      if (sessionId !== undefined) bySession.set(sessionId, ofSession + 1)
      return () => leave(taker)
    },
  }
}

const tooMany = (what: string) => new DomainError('too_many', `Too many open streams ${what}`, { retryAfterSeconds: 5 })
