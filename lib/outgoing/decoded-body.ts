import { pipeline, Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress, constants as zlib } from 'node:zlib'
import { type AnswerBody, type BodyOptions, createAnswerBody, type Flow } from './answer-body.ts'

/** Options that unpack arriving bytes at once and ignore a missing end, as browsers do. */
const FLUSHED = { flush: zlib.Z_SYNC_FLUSH, finishFlush: zlib.Z_SYNC_FLUSH }
const BROTLI_FLUSHED = { flush: zlib.BROTLI_OPERATION_FLUSH, finishFlush: zlib.BROTLI_OPERATION_FLUSH }
const DECODERS = new Map<string, () => NodeJS.ReadWriteStream>([
  ['gzip', () => createGunzip(FLUSHED)],
  ['x-gzip', () => createGunzip(FLUSHED)],
  ['deflate', () => createInflate(FLUSHED)],
  ['br', () => createBrotliDecompress(BROTLI_FLUSHED)],
  // The largest window that a client has to know (RFC 9659, section 3).
  ['zstd', () => createZstdDecompress({ params: { [zlib.ZSTD_d_windowLogMax]: 23 } })],
])
const MAX_ENCODINGS = 5

/**
 * Returns the decoders of a body, in their order. Empty for a plain body, and for an encoding that was not requested.
 */
export function decodersOf(headers: Headers): NodeJS.ReadWriteStream[] {
  const names = (headers.get('content-encoding') ?? '').toLowerCase().split(',')
  if (names.length > MAX_ENCODINGS) return []
  const makers = names.map((name) => DECODERS.get(name.trim()))
  return makers.every((make) => make !== undefined) ? makers.reverse().map((make) => make()) : []
}

/**
 * Creates a body that is unpacked by `decoders`. The limit on its size holds after that. `toError` converts the errors of
 * decoders.
 */
export function createDecodedBody(
  decoders: NodeJS.ReadWriteStream[],
  options: BodyOptions,
  flow: Flow,
  toError: (error: unknown) => unknown,
): AnswerBody {
  const packed = new Readable({ read: flow.resume })
  const fail = (error: unknown) => {
    body.fail(toError(error), 'after_received')
    flow.abort(error)
  }
  // The last of the decoders: its type says nothing of reading.
  const unpacked = pipeline([packed, ...decoders], (error) => error && fail(error)) as unknown as Readable
  const body = createAnswerBody(options, {
    pause: () => unpacked.pause(),
    resume: () => unpacked.resume(),
    abort: (reason) => {
      flow.abort(reason)
      packed.destroy()
    },
  })
  unpacked.on('data', body.add)
  unpacked.on('end', body.end)
  return {
    stream: body.stream,
    add: (piece) => {
      if (!packed.push(piece)) flow.pause()
    },
    end: () => void packed.push(null),
    fail: (error, when) => {
      body.fail(error, when)
      packed.destroy()
    },
  }
}
