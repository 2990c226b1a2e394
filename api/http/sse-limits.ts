import { DomainError } from '../../domain/kit/errors.ts'
import { createOwnerPlaces } from '../../lib/owner-places.ts'

const MAX_STREAMS = 10_000
const MAX_STREAMS_PER_SESSION = 12

type Limits = { maxStreams?: number; maxStreamsPerOrganization: number }
/** `cut` ends the stream where another owner needs its place. */
type Taker = { owner: string; sessionId: string | undefined; cut(): void }

/** Places for the streams of a process, of each owner and of each session. */
export type StreamPlaces = {
  /** Takes a place. Returns a function that gives it back. Throws `too_many`. */
  take(taker: Taker): () => void
}

export function createStreamPlaces({ maxStreams = MAX_STREAMS, maxStreamsPerOrganization }: Limits): StreamPlaces {
  const places = createOwnerPlaces(maxStreams, maxStreamsPerOrganization)
  const bySession = new Map<string, number>()
  const change = (sessionId: string, by: 1 | -1) => {
    const left = (bySession.get(sessionId) ?? 0) + by
    if (left === 0) bySession.delete(sessionId)
    else bySession.set(sessionId, left)
  }
  return {
    take: ({ owner, sessionId, cut }) => {
      const isFull = sessionId !== undefined && (bySession.get(sessionId) ?? 0) >= MAX_STREAMS_PER_SESSION
      if (isFull) throw full('on this session')
      let isHeld = true
      const end = () => {
        if (isHeld && sessionId !== undefined) change(sessionId, -1)
        isHeld = false
      }
      const leave = places.take({ owner, cut: () => [end(), cut()] })
      if (leave === 'own') throw full('in the organizations of this owner')
      if (leave === 'all') throw full('on this server')
      if (sessionId !== undefined) change(sessionId, 1)
      return () => {
        end()
        leave()
      }
    },
  }
}

const full = (what: string) =>
  new DomainError('too_many', `Too many open streams ${what}; close one, or try again`, {
    code: 'too_many_streams',
    retryAfterSeconds: 5,
  })
