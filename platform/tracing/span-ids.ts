import { createHash } from 'node:crypto'
import { type IdGenerator, RandomIdGenerator } from '@opentelemetry/sdk-trace'

type Ids = { traceId: string; spanId: string }

/**
 * Derives the ids of a turn's span from the turn's id, so that every process which works on the turn knows them. The id of
 * the trace is for a turn without a traceparent.
 */
export function idsOfTurn(turnId: string): Ids {
  const hash = createHash('sha256').update(turnId).digest('hex')
  return { spanId: hash.slice(0, 16), traceId: hash.slice(16, 48) }
}

/** Generator of random ids, which gives the span that `start` starts the given ids instead. */
export function createSpanIds(): { generator: IdGenerator; withIds<T>(ids: Ids, start: () => T): T } {
  const random = new RandomIdGenerator()
  let given: Ids | undefined
  return {
    generator: {
      generateTraceId: () => given?.traceId ?? random.generateTraceId(),
      generateSpanId: () => given?.spanId ?? random.generateSpanId(),
    },
    withIds: (ids, start) => {
      given = ids
      try {
        return start()
      } finally {
        given = undefined
      }
    },
  }
}
