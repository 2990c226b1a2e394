import { RequestError } from './errors.ts'

const MIB = 1024 * 1024
/** Bodies that are in memory at once in a process may have so many bytes together. */
export const BODY_MEMORY_BYTES = 256 * MIB
/** Of them, those that come compressed: a few bytes of one may become a whole body, so each counts as its limit. */
const COMPRESSED_SHARE = 0.25

export type BodyMemory = { hold(): BodyHold }
/** What one request's body takes of the memory. */
export type BodyHold = {
  /** Throws RequestError 503 when there is no room. */
  add(bytes: number, kind: 'plain' | 'compressed'): void
  release(): void
}

/**
 * Counts what has been read of bodies, until their requests have been handled. What a client only announces does not
 * count: with a few connections that send nothing anybody could use up all there is.
 */
export function createBodyMemory(limitBytes: number): BodyMemory {
  const left = { plain: limitBytes * (1 - COMPRESSED_SHARE), compressed: limitBytes * COMPRESSED_SHARE }
  return {
    hold: () => {
      const held = { plain: 0, compressed: 0 }
      return {
        add(bytes, kind) {
          if (bytes > left[kind]) throw noRoom()
          left[kind] -= bytes
          held[kind] += bytes
        },
        release() {
          for (const kind of ['plain', 'compressed'] as const) {
            left[kind] += held[kind]
            held[kind] = 0
          }
        },
      }
    },
  }
}

const noRoom = () =>
  new RequestError(503, 'The service is reading too many large requests; nothing was done, try again', {
    'Retry-After': '2',
  })
