import { RequestError } from './errors.ts'

const MIB = 1024 * 1024
/** Number of bytes that all bodies in a process may have in memory at once. */
export const BODY_MEMORY_BYTES = 256 * MIB
/** Share of the memory for compressed bodies. A few bytes may become a whole body, so each counts as its limit. */
const COMPRESSED_SHARE = 0.25

export type BodyMemory = { hold(): BodyHold }
/** Memory held for one request's body. */
export type BodyHold = {
  /** Throws RequestError 503 when there is no room. */
  add(bytes: number, kind: 'plain' | 'compressed'): void
  release(): void
}

/**
 * Counts the bytes read of bodies until their requests have been handled. Announced lengths do not count: otherwise a
 * few connections that send nothing could use up all the memory.
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
