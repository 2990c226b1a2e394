import { isUtf8 } from 'node:buffer'
import type { Context } from 'koa'
import { type HttpMethodEnum, koaBody } from 'koa-body'
import { RequestError } from './errors.ts'
import { checkText } from './text.ts'

export const DEFAULT_BODY_BYTES = 2 * 1024 * 1024
const BODY_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as HttpMethodEnum[]

/** The request's JSON, or undefined when there is none. Throws RequestError 400, 413 or 415. */
export async function readJson(ctx: Context, limitBytes: number): Promise<unknown> {
  const hasBody = ctx.request.length !== 0 && (ctx.request.length !== undefined || 'transfer-encoding' in ctx.headers)
  if (!hasBody) return undefined
  if (!ctx.is('json')) {
    throw new RequestError(415, 'The request body must be JSON with Content-Type: application/json')
  }
  const bytes: Uint8Array[] = []
  const keep = (chunk: Uint8Array) => bytes.push(chunk)
  ctx.req.on('data', keep)
  const parse = koaBody({
    json: true,
    jsonLimit: limitBytes,
    jsonStrict: false,
    urlencoded: false,
    text: false,
    multipart: false,
    parsedMethods: BODY_METHODS,
    onError: (error) => {
      // The rest is taken and dropped: a client that goes on sending gets its answer, and the connection stays fit.
      ctx.req.off('data', keep).resume()
      throw bodyError(error, limitBytes)
    },
  })
  await parse(ctx, async () => {})
  // Chunked, and nothing came.
  if (bytes.length === 0) return undefined
  // The parser replaces what is not UTF-8 without a word. What is compressed is not looked at.
  const isPlain = (ctx.get('Content-Encoding') || 'identity') === 'identity'
  if (isPlain && !isUtf8(Buffer.concat(bytes))) throw new RequestError(400, 'The request body is not valid UTF-8')
  const body: unknown = ctx.request.body
  checkText(body, 'The request body')
  return body
}

function bodyError(error: Error, limitBytes: number): RequestError {
  const status = (error as { status?: number }).status
  if (status === 413) return new RequestError(413, `The request body must be at most ${limitBytes} bytes`)
  if (status === 415) return new RequestError(415, 'The content encoding or character set of the body is not supported')
  return new RequestError(400, `The request body is not valid JSON: ${error.message.slice(0, 200)}`)
}
