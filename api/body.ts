import type { Context } from 'koa'
import { type HttpMethodEnum, koaBody } from 'koa-body'
import { RequestError } from './errors.ts'

export const DEFAULT_BODY_BYTES = 2 * 1024 * 1024
/** Deeper JSON has no use here and would exhaust the stack of whatever walks it. */
const MAX_DEPTH = 64
const BODY_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'] as HttpMethodEnum[]

/** The request's JSON, or undefined when there is none. Throws RequestError 400, 413 or 415. */
export async function readJson(ctx: Context, limitBytes: number): Promise<unknown> {
  const hasBody = ctx.request.length !== 0 && (ctx.request.length !== undefined || 'transfer-encoding' in ctx.headers)
  if (!hasBody) return undefined
  if (!ctx.is('json', '+json')) {
    throw new RequestError(415, 'The request body must be JSON with Content-Type: application/json')
  }
  const parse = koaBody({
    json: true,
    jsonLimit: limitBytes,
    jsonStrict: false,
    urlencoded: false,
    text: false,
    multipart: false,
    parsedMethods: BODY_METHODS,
    onError: (error) => {
      throw bodyError(error, limitBytes)
    },
  })
  await parse(ctx, async () => {})
  const body: unknown = ctx.request.body
  checkText(body)
  return body
}

function bodyError(error: Error, limitBytes: number): RequestError {
  const status = (error as { status?: number }).status
  if (status === 413) return new RequestError(413, `The request body must be at most ${limitBytes} bytes`)
  if (status === 415) return new RequestError(415, 'The content encoding or character set of the body is not supported')
  return new RequestError(400, `The request body is not valid JSON: ${error.message.slice(0, 200)}`)
}

/**
 * NUL and lone surrogates are valid JSON but no Unicode text; Postgres stores neither. Walks without recursion.
 * Throws RequestError 400 that names the place.
 */
function checkText(body: unknown): void {
  const left: { value: unknown; path: string; depth: number }[] = [{ value: body, path: '', depth: 0 }]
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    const { value, path, depth } = item
    if (depth > MAX_DEPTH) throw new RequestError(400, `The request body is nested more than ${MAX_DEPTH} levels deep`)
    if (typeof value === 'string') checkString(value, path)
    if (typeof value !== 'object' || value === null) continue
    for (const [key, inner] of Object.entries(value)) {
      checkString(key, path)
      left.push({ value: inner, path: path === '' ? key : `${path}.${key}`, depth: depth + 1 })
    }
  }
}

function checkString(text: string, path: string): void {
  const place = path === '' ? 'The request body' : path.slice(0, 200)
  if (text.includes('\0')) throw new RequestError(400, `${place}: must not contain a NUL character`)
  if (!text.isWellFormed())
    throw new RequestError(400, `${place}: must be well-formed Unicode (it has a lone surrogate)`)
}
