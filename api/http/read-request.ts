import type { Context } from 'koa'
import type { Endpoint } from '../../contract/kit/endpoint.ts'
import { DEFAULT_BODY_BYTES, readJson, readText } from './body.ts'
import type { BodyHold } from './body-memory.ts'
import { RequestError } from './errors.ts'
import { type ReceivedUpload, readMultipart } from './multipart.ts'
import { parse } from './parse.ts'
import type { ParseTurn } from './parse-queue.ts'
import { isRaw, readRaw } from './raw-body.ts'
import { checkText } from './text.ts'

/** Parsed parts of a request. Each is undefined where the endpoint declares none. */
export type Input = {
  idempotencyKey: string | undefined
  params: unknown
  query: unknown
  body: unknown
  /** Body, or a part of it, that is a file and still arriving. */
  upload: ReceivedUpload | undefined
}

export type Reading = {
  hold: BodyHold
  /** Turn of this caller to work on a large body. */
  turn: ParseTurn
  /** Checks the caller's credential again when the body has taken long. */
  recheck: () => Promise<void>
}

/** Parses a request with its endpoint's schemas. Throws RequestError 400, 408, 413, 415 or 503. */
export async function readRequest(ctx: Context, endpoint: Endpoint, reading: Reading): Promise<Input> {
  checkText(ctx.query, 'The query')
  const idempotencyKey = endpoint.creates ? readIdempotencyKey(ctx) : undefined
  const params = endpoint.params && parse(endpoint.params, paramsOf(ctx, endpoint), '')
  if (params !== undefined) checkPath(ctx)
  const query = endpoint.query && parse(endpoint.query, ctx.query, '')
  if (endpoint.multipart !== undefined) {
    const upload = await readMultipart(ctx, endpoint.multipart, reading)
    return { idempotencyKey, params, query, body: undefined, upload }
  }
  if (endpoint.raw !== undefined && (endpoint.body === undefined || isRaw(ctx))) {
    return { idempotencyKey, params, query, body: undefined, upload: readRaw(ctx, endpoint.raw, reading) }
  }
  const body = endpoint.body && parse(endpoint.body, await readBody(ctx, endpoint, reading), '')
  if (endpoint.body === undefined) await ignoreBody(ctx, reading)
  return { idempotencyKey, params, query, body, upload: undefined }
}

/** Returns the parameters of the path. A wildcard that takes no segment is empty. */
function paramsOf({ params }: Context, { path }: Endpoint): Record<string, unknown> {
  const wildcard = /\{(\w+)\*\}$/.exec(path)?.[1]
  return wildcard === undefined ? params : { [wildcard]: '', ...params }
}

/**
 * Throws RequestError 400 for a path that is not valid text. The router passes on a path that it cannot decode: the
 * schema of an id refuses that, but names of files, values and secrets may be any text.
 */
function checkPath(ctx: Context): void {
  try {
    decodeURIComponent(ctx.path)
  } catch {
    throw new RequestError(400, 'The path: must be percent-encoded UTF-8')
  }
  checkText(ctx.params, 'The path')
}

/** Returns the request's Idempotency-Key. Throws RequestError 400 for a malformed one. */
export function readIdempotencyKey(ctx: Context): string | undefined {
  if (!('idempotency-key' in ctx.headers)) return undefined
  const key = ctx.get('Idempotency-Key')
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key
  throw new RequestError(400, 'Idempotency-Key: must be 1 to 255 ASCII characters')
}

async function readBody(ctx: Context, endpoint: Endpoint, reading: Reading): Promise<unknown> {
  const bounds = { ...reading, limitBytes: endpoint.bodyLimitBytes ?? DEFAULT_BODY_BYTES }
  if (endpoint.textTypes !== undefined) return readText(ctx, bounds, endpoint.textTypes)
  const body = await readJson(ctx, bounds)
  if (body !== undefined) return body
  if (endpoint.bodyOptional) return {}
  throw new RequestError(400, 'A JSON request body is required')
}

/** Maximum size of a body that is not needed. */
const IGNORED_BODY_BYTES = 16 * 1024

/** Reads and ignores a body that the endpoint does not need, so that the limits hold. Some clients send `{}`. */
async function ignoreBody(ctx: Context, reading: Reading): Promise<void> {
  if (ctx.method !== 'GET') await readJson(ctx, { ...reading, limitBytes: IGNORED_BODY_BYTES })
}
