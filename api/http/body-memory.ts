import { RequestError } from './errors.ts'

const MIB = 1024 * 1024
/** Maximum number of bytes of all bodies in a process's memory at once. The largest body fits into its owner's share. */
export const BODY_MEMORY_BYTES = 272 * MIB
/** Share of the memory for compressed bodies. A few bytes may become a whole body, so each counts as its limit. */
const COMPRESSED_SHARE = 0.25

/** Share of the memory that one owner's bodies may have, so that a few slow senders do not keep all others out. */
const OWNER_SHARE = 0.25

/** `owner` is the owner of the caller's organization. Callers without one share one budget. */
export type BodyMemory = { hold(owner: string | undefined): BodyHold }
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
  const limits = { plain: limitBytes * (1 - COMPRESSED_SHARE), compressed: limitBytes * COMPRESSED_SHARE }
  const all = nothing()
  const owners = new Map<string, Held>()
  return {
    hold: (owner = '') => {
      const held = nothing()
      return {
        add(bytes, kind) {
          const own = owners.get(owner) ?? nothing()
          const isFull = all[kind] + bytes > limits[kind] || own[kind] + bytes > limits[kind] * OWNER_SHARE
          if (isFull) throw noRoom()
          owners.set(owner, own)
          for (const sum of [all, own, held]) sum[kind] += bytes
        },
        release() {
          const own = owners.get(owner)
          if (own === undefined) return
          for (const sum of [all, own]) for (const kind of KINDS) sum[kind] -= held[kind]
          Object.assign(held, nothing())
          if (own.plain + own.compressed === 0) owners.delete(owner)
        },
      }
    },
  }
}

const KINDS = ['plain', 'compressed'] as const
type Held = Record<(typeof KINDS)[number], number>
const nothing = (): Held => ({ plain: 0, compressed: 0 })

const noRoom = () =>
  new RequestError(503, 'The service is reading too many large requests; nothing was done, try again', {
    'Retry-After': '2',
  })
