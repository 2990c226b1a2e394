import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'
import { type HttpMethodEnum, koaBody } from 'koa-body'
import { arrivalOf, rejectOnAbort } from './arrival.ts'
import type { BodyHold } from './body-memory.ts'
import { RequestError } from './errors.ts'
import { checkText } from './text.ts'

export const DEFAULT_BODY_BYTES = 2 * 1024 * 1024
const BODY_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as HttpMethodEnum[]

/** Limits of a body: its own size, and the memory that all bodies share. */
export type BodyBounds = { limitBytes: number; hold: BodyHold }

/** Returns the request's JSON, or undefined without a body. Throws RequestError 400, 408, 413, 415 or 503. */
export async function readJson(ctx: Context, bounds: BodyBounds): Promise<unknown> {
  if (!hasBody(ctx)) return undefined
  if (!ctx.is('json')) {
    throw new RequestError(415, 'The request body must be JSON with Content-Type: application/json')
  }
  checkCharset(ctx)
  const parsed = { json: true, jsonLimit: bounds.limitBytes, jsonStrict: false, text: false }
  if (!(await parse(ctx, bounds, parsed))) return undefined
  const body: unknown = ctx.request.body
  checkText(body, 'The request body')
  return body
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
  const parsed = { json: false, text: true, textTypes: [...types], textLimit: bounds.limitBytes }
  if (!(await parse(ctx, bounds, parsed))) return ''
  const text = String(ctx.request.body)
  checkText(text, 'The request body')
  return text
}

const hasBody = (ctx: Context): boolean =>
  ctx.request.length !== 0 && (ctx.request.length !== undefined || 'transfer-encoding' in ctx.headers)

/** Puts the parsed body into ctx.request.body. Returns false for a chunked body without any bytes. */
async function parse(ctx: Context, bounds: BodyBounds, options: Parameters<typeof koaBody>[0]): Promise<boolean> {
  // The parser silently replaces invalid UTF-8. Compressed bodies are not checked for it.
  const isPlain = (ctx.get('Content-Encoding') || 'identity') === 'identity'
  const full = new AbortController()
  const bytes: Uint8Array[] = []
  const keep = (chunk: Uint8Array) => {
    try {
      if (isPlain) bounds.hold.add(chunk.length, 'plain')
      else if (bytes.length === 0) bounds.hold.add(bounds.limitBytes, 'compressed')
      bytes.push(chunk)
    } catch (error) {
      full.abort(error)
    }
  }
  ctx.req.on('data', keep)
  const read = koaBody({
    urlencoded: false,
    multipart: false,
    parsedMethods: BODY_METHODS,
    onError: (error) => {
      // The rest is discarded: a client that is still sending gets its answer, and the connection remains usable.
      ctx.req.off('data', keep).resume()
      throw bodyError(error, bounds.limitBytes, options?.json ? 'is not valid JSON' : 'cannot be read')
    },
    ...options,
  })
  const arrival = arrivalOf(ctx)
  const stop = AbortSignal.any([full.signal, arrival.signal])
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
  if (bytes.length === 0) return false
  if (isPlain && !isUtf8(Buffer.concat(bytes))) throw new RequestError(400, 'The request body is not valid UTF-8')
  return true
}

function bodyError(error: Error, limitBytes: number, problem: string): RequestError {
  const status = (error as { status?: number }).status
  if (status === 413) return new RequestError(413, `The request body must be at most ${limitBytes} bytes`)
  if (status === 415) return new RequestError(415, 'The content encoding or character set of the body is not supported')
  return new RequestError(400, `The request body ${problem}: ${error.message.slice(0, 200)}`)
}
