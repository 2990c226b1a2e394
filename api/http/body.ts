import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'
import { type HttpMethodEnum, koaBody } from 'koa-body'
import { createJsonScan, type JsonExcess } from '../../lib/json-scan.ts'
import { rejectOnAbort } from '../../lib/reject-on-abort.ts'
import { arrivalOf } from './arrival.ts'
import type { BodyHold } from './body-memory.ts'
import { RequestError } from './errors.ts'
import type { ParseTurn } from './parse-queue.ts'
import { checkText, MAX_DEPTH, tooDeep } from './text.ts'

export const DEFAULT_BODY_BYTES = 2 * 1024 * 1024
const BODY_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as HttpMethodEnum[]

/** Maximum number of values and keys in a JSON body. They cost more than their bytes, so they have a limit of their own. */
export const MAX_PARTS = 50_000
/** Number of bytes from which a body waits until it may be parsed. Smaller ones take a millisecond or two. */
const LARGE_BYTES = 16 * 1024
/** Number of a body's bytes that are read in one round of the event loop. */
const ROUND_BYTES = 256 * 1024
/** Fixed cost of a piece of a body, as a number of bytes that take as long. */
const PIECE_COST = 1024
/** Number of pieces that may have any length. A body may come in more only if they are not tiny. */
const FREE_PIECES = 10_000
const MIN_PIECE_BYTES = 64
/** Encodings that are unpacked. Brotli is not: its unpacker takes megabytes for a few bytes, before any limit applies. */
const ENCODINGS = ['identity', 'gzip', 'deflate']
/**
 * Pattern of everything in a JSON text that `checkText` may refuse: there is no other way to write it. A number that is
 * too large has many digits, or three in its exponent.
 */
const SUSPICIOUS = /\\u(?:00|d[89a-f])|__proto__|\de\+?\d{3,}(?=[\s,\]}]|$)|(?<!\d)\d{200}/i

/** Limits of a body: its own size, the memory that all bodies share, and its owner's turn to be parsed. */
export type BodyBounds = { limitBytes: number; hold: BodyHold; turn: ParseTurn }

/**
 * Returns the request's JSON, or undefined without a body. Its parts are counted while it arrives. Throws RequestError
 * 400, 408, 413, 415 or 503.
 */
export async function readJson(ctx: Context, bounds: BodyBounds): Promise<unknown> {
  if (!hasBody(ctx)) return undefined
  if (!ctx.is('json')) {
    throw new RequestError(415, 'The request body must be JSON with Content-Type: application/json')
  }
  checkCharset(ctx)
  const scan = createJsonScan({ maxParts: MAX_PARTS, maxDepth: MAX_DEPTH })
  const count = (bytes: Uint8Array) => {
    const excess = scan.add(bytes)
    if (excess !== undefined) throw tooMuch(excess)
  }
  const text = await readUtf8(ctx, bounds, ['json'], count)
  if (text === undefined) return undefined
  const isLarge = text.length > LARGE_BYTES
  if (isLarge) await bounds.turn.step()
  const body = parseJson(text)
  if (isLarge) await bounds.turn.step()
  if (SUSPICIOUS.test(text)) checkText(body, 'The request body', '__proto__')
  return body
}

const tooMuch = (excess: JsonExcess): RequestError =>
  excess === 'depth'
    ? tooDeep('The request body')
    : new RequestError(400, `The request body has more than ${MAX_PARTS} values and keys`)

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const [place] = (error instanceof Error && / \(line \d+ column \d+\)/.exec(error.message)) || ['']
    throw new RequestError(400, `The request body is not valid JSON${place}`)
  }
}

/** Throws 415 for a character set other than UTF-8 and its subset ASCII: the parser would take it for UTF-8. */
function checkCharset(ctx: Context): void {
  const { charset } = ctx.request
  if (charset !== '' && !/^(utf-?8|us-ascii)$/i.test(charset)) throw new RequestError(415, 'The charset must be utf-8')
}

/** Returns the request's text, which is empty without a body. Throws RequestError 400, 408, 413, 415 or 503. */
export async function readText(ctx: Context, bounds: BodyBounds, types: readonly string[]): Promise<string> {
  if (!hasBody(ctx)) return ''
  ctx.req.headers['content-type'] ??= 'text/plain'
  if (!ctx.is(...types)) throw new RequestError(415, `The Content-Type must be one of ${types.join(', ')}`)
  checkCharset(ctx)
  const text = (await readUtf8(ctx, bounds, types)) ?? ''
  checkText(text, 'The request body')
  return text
}

export const hasBody = (ctx: Context): boolean =>
  ctx.request.length !== 0 && (ctx.request.length !== undefined || 'transfer-encoding' in ctx.headers)

/**
 * Reads the body as text; undefined for a chunked body without any bytes. `inspect` gets the unpacked bytes, and stops
 * the reading when it throws.
 */
async function readUtf8(
  ctx: Context,
  bounds: BodyBounds,
  types: readonly string[],
  inspect: (bytes: Uint8Array) => void = () => {},
): Promise<string | undefined> {
  if ((ctx.request.length ?? 0) > bounds.limitBytes) {
    ctx.req.resume()
    throw tooLarge(bounds.limitBytes)
  }
  const encoding = ctx.get('Content-Encoding') || 'identity'
  if (!ENCODINGS.includes(encoding)) throw unsupported()
  const isPlain = encoding === 'identity'
  const refused = new AbortController()
  let isEmpty = true
  let bytesRead = 0
  let pieces = 0
  let costOfRound = 0
  // Otherwise Node would read megabytes of each connection before anything else happens.
  const pauseForARound = () => {
    costOfRound = 0
    ctx.req.pause()
    setImmediate(() => ctx.req.resume())
  }
  const look = (chunk: Uint8Array) => {
    try {
      if (isPlain) bounds.hold.add(chunk.length, 'plain')
      else if (isEmpty) bounds.hold.add(bounds.limitBytes, 'compressed')
      if (isPlain) inspect(chunk)
      isEmpty = false
      bytesRead += chunk.length
      pieces++
      if (bytesRead > bounds.limitBytes) throw tooLarge(bounds.limitBytes)
      refuseTinyPieces(pieces, bytesRead)
      costOfRound += chunk.length + PIECE_COST
      if (costOfRound > ROUND_BYTES) pauseForARound()
    } catch (error) {
      refused.abort(error)
    }
  }
  ctx.req.on('data', look)
  const read = koaBody({
    json: false,
    urlencoded: false,
    multipart: false,
    text: true,
    textTypes: [...types],
    textLimit: bounds.limitBytes,
    // One character for each byte: the parser would replace invalid UTF-8, which takes long.
    encoding: 'latin1',
    parsedMethods: BODY_METHODS,
    onError: (error) => {
      // The rest is discarded: a client that is still sending gets its answer, and the connection remains usable.
      ctx.req.off('data', look).resume()
      throw bodyError(error, bounds.limitBytes)
    },
  })
  const arrival = arrivalOf(ctx)
  const stop = AbortSignal.any([refused.signal, arrival.signal])
  try {
    await rejectOnAbort(
      stop,
      read(ctx, async () => {}),
    )
  } finally {
    // The parser would otherwise go on collecting.
    if (stop.aborted) ctx.req.removeAllListeners('data')
    if (stop.aborted) arrival.dropRest()
  }
  if (isEmpty) return undefined
  const characters = String(ctx.request.body)
  if (characters.length > LARGE_BYTES) await bounds.turn.step()
  const bytes = Buffer.from(characters, 'latin1')
  ctx.request.body = undefined
  if (!isPlain) inspect(bytes)
  if (!isUtf8(bytes)) throw new RequestError(400, 'The request body is not valid UTF-8')
  return bytes.toString().replace(/^\ufeff/, '')
}

/** Throws RequestError for a body that comes in very many pieces of a few bytes: each costs as much as a large one. */
export function refuseTinyPieces(pieces: number, bytes: number): void {
  if (pieces <= FREE_PIECES || bytes >= pieces * MIN_PIECE_BYTES) return
  throw new RequestError(
    400,
    `The request body comes in chunks of less than ${MIN_PIECE_BYTES} bytes; send larger ones`,
  )
}

const tooLarge = (limitBytes: number) => new RequestError(413, `The request body must be at most ${limitBytes} bytes`)

const unsupported = () =>
  new RequestError(415, 'The body must be UTF-8, unpacked or with Content-Encoding gzip or deflate')

function bodyError(error: Error, limitBytes: number): RequestError {
  const status = (error as { status?: number }).status
  if (status === 413) return tooLarge(limitBytes)
  if (status === 415) return unsupported()
  return new RequestError(400, 'The request body cannot be read; check its Content-Length and Content-Encoding')
}
