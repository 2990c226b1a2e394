import { OutgoingError } from './outgoing-error.ts'

type Bytes = Uint8Array<ArrayBuffer>

export type BodyOptions = {
  /** Size limit of the body. */
  maxBytes: number
  /** Longest time in ms that bytes wait for others, so that many small pieces cost little. 0 passes each on at once. */
  joinMs: number
}

/** Connection that a body comes from. `pause` and `resume` may be repeated. */
export type Flow = { pause(): void; resume(): void; abort(reason: unknown): void }

/** Body of an answer that is being received. */
export type AnswerBody = {
  stream: ReadableStream<Bytes>
  add(piece: Bytes): void
  end(): void
  /** Ends the stream with an error after what has been received, or at once. */
  fail(error: unknown, when: 'after_received' | 'at_once'): void
}

/** Number of bytes from which they are passed on without waiting. */
const ENOUGH_BYTES = 16 * 1024
/** Number of unread bytes from which the connection is paused. */
const MAX_HELD_BYTES = 64 * 1024
/** Share of an answer's time so far that its bytes may wait, so that the first ones hardly wait. */
const JOINED_PART = 1 / 8

/**
 * Creates a body that is passed on as it is read. What arrives while nobody reads, or shortly after other bytes, is
 * joined. The end of the body waits for nothing.
 */
export function createAnswerBody({ maxBytes, joinMs }: BodyOptions, flow: Flow): AnswerBody {
  const startedAt = performance.now()
  let passedAt = startedAt
  let pieces: Bytes[] = []
  let heldBytes = 0
  let totalBytes = 0
  let isWanted = false
  let end: { error?: unknown } | undefined
  let timer: NodeJS.Timeout | undefined
  let controller: ReadableStreamDefaultController<Bytes>

  const drop = () => {
    clearTimeout(timer)
    timer = undefined
    pieces = []
    heldBytes = 0
  }
  const passOn = (now: number) => {
    const [first] = pieces
    const joined = pieces.length === 1 && first !== undefined ? first : join(pieces, heldBytes)
    drop()
    isWanted = false
    passedAt = now
    flow.resume()
    controller.enqueue(joined)
  }
  const close = () => {
    if (end === undefined) return
    if ('error' in end) controller.error(end.error)
    else controller.close()
  }
  const offer = () => {
    if (!isWanted) return
    if (pieces.length === 0) return close()
    const now = performance.now()
    const waitMs = passedAt + Math.min(joinMs, (now - startedAt) * JOINED_PART) - now
    if (waitMs < 1 || end !== undefined || heldBytes >= ENOUGH_BYTES) return passOn(now)
    timer ??= setTimeout(() => isWanted && passOn(performance.now()), waitMs)
  }
  const stream = new ReadableStream<Bytes>(
    {
      start: (given) => {
        controller = given
      },
      pull: () => {
        isWanted = true
        offer()
      },
      cancel: (reason) => {
        end ??= {}
        drop()
        flow.abort(reason)
      },
    },
    // Nothing is read ahead.
    { highWaterMark: 0 },
  )
  const fail: AnswerBody['fail'] = (error, when) => {
    if (end !== undefined) return
    end = { error }
    if (when === 'after_received') return offer()
    drop()
    close()
  }
  return {
    stream,
    add: (piece) => {
      if (end !== undefined) return
      totalBytes += piece.length
      if (totalBytes > maxBytes) {
        const error = new OutgoingError('too_large', `The answer has more than ${maxBytes} bytes.`)
        fail(error, 'after_received')
        return flow.abort(error)
      }
      pieces.push(piece)
      heldBytes += piece.length
      if (heldBytes >= MAX_HELD_BYTES) flow.pause()
      offer()
    },
    end: () => {
      end ??= {}
      offer()
    },
    fail,
  }
}

function join(pieces: Bytes[], length: number): Bytes {
  const joined = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    joined.set(piece, at)
    at += piece.length
  }
  return joined
}
