import { setImmediate as nextTurn } from 'node:timers/promises'
import { createJsonScan } from '../../../../lib/json-scan.ts'
import { sleep } from '../../../../lib/sleep.ts'
import { createEventScan } from './event-scan.ts'
import { type Exchange, exchanges } from './exchange.ts'
import { LimitError } from './failure.ts'
import { MAX_DEPTH, MAX_LINES, MAX_PARTS } from './limits.ts'
import { StatusError } from './status-error.ts'

/**
 * Creates the `fetch` of a server's transport. It throws `StatusError` for statuses that the library would misinterpret
 * as part of the protocol, and records in the exchange why a body broke off.
 */
export const createServerFetch =
  (guarded: typeof fetch): typeof fetch =>
  async (url, init) => {
    const exchange = exchanges.getStore()
    try {
      const answer = await guarded(url, init)
      if (hasEnded(answer.status)) {
        throw new StatusError(answer, await readRefusal(answer))
      }
      if (exchange !== undefined && init?.method === 'POST') {
        exchange.isStream = isStream(answer)
        exchange.isPage = answer.status !== 202 && /^text\/html\b/i.test(typeOf(answer))
      }
      return watch(answer, exchange)
    } catch (error) {
      note(exchange, error)
      throw error
    }
  }

/** Statuses after which trying another protocol is useless. */
const hasEnded = (status: number) => status === 401 || status === 403 || status === 429 || status >= 500

const typeOf = ({ headers }: Response) => headers.get('content-type') ?? ''
const isStream = (answer: Response) => /^text\/event-stream\b/i.test(typeOf(answer))

const MAX_REFUSAL_BYTES = 2048
const REFUSAL_MS = 1000

/** Reads the text of a short and fast refusal, and cancels the rest. Some servers send no type. */
async function readRefusal(answer: Response): Promise<string> {
  const reader = answer.body?.getReader()
  if (reader === undefined) return ''
  const read = async () => {
    const chunks: Uint8Array[] = []
    for (let length = 0; length <= MAX_REFUSAL_BYTES; ) {
      const { done, value } = await reader.read()
      if (done) return Buffer.concat(chunks).toString()
      chunks.push(value)
      length += value.length
    }
    return ''
  }
  const over = new AbortController()
  try {
    if (!/^(text\/plain\b|application\/json\b|$)/i.test(typeOf(answer))) return ''
    return await Promise.race([read(), sleep(REFUSAL_MS, over.signal).then(() => '')])
  } catch {
    return ''
  } finally {
    over.abort()
    reader.cancel().catch(() => {})
  }
}

/** Maximum size of a piece that is passed on at once. A piece may have hundreds of events. */
const PIECE_BYTES = 4 * 1024

/** Passes on an answer within the bounds of parsing, without blocking other work. */
function watch(answer: Response, exchange: Exchange | undefined): Response {
  const { status, statusText, headers, body } = answer
  if (body === null) return answer
  const pieces = piecesOf(body, exchange, isStream(answer))
  const watched = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          note(exchange, error)
          throw error
        }
      },
      cancel: async () => void (await pieces.return()),
    },
    // Disables reading ahead.
    { highWaterMark: 0 },
  )
  return new Response(watched, { status, statusText, headers })
}

async function* piecesOf(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  exchange: Exchange | undefined,
  isStream: boolean,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  const exceeds = isStream ? eventCheck() : jsonCheck()
  for await (const chunk of body) {
    exchange?.count?.(chunk.length)
    if (!isStream) {
      if (exceeds(chunk)) throw tooComplex()
      yield chunk
      continue
    }
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      const piece = chunk.subarray(at, at + PIECE_BYTES)
      if (exceeds(piece)) throw tooComplex()
      if (at > 0) await nextTurn()
      yield piece
    }
  }
}

type Check = (bytes: Uint8Array) => boolean

function jsonCheck(): Check {
  const scan = createJsonScan({ maxParts: MAX_PARTS, maxDepth: MAX_DEPTH })
  return (bytes) => scan.add(bytes) !== undefined
}

function eventCheck(): Check {
  const scan = createEventScan({ maxParts: MAX_PARTS, maxDepth: MAX_DEPTH, maxLines: MAX_LINES })
  return (bytes) => scan.exceeds(bytes)
}

const tooComplex = () => new LimitError('sent an answer with too many or too deeply nested parts.')

/** Keeps the first failure, because later ones result from it. */
function note(exchange: Exchange | undefined, error: unknown): void {
  if (exchange !== undefined && error instanceof Error && !exchange.signal.aborted) exchange.failure ??= error
}
