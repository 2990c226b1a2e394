import type { Context } from 'koa'
import type { Endpoint } from '../../contract/endpoint.ts'
import { DEFAULT_BODY_BYTES, readJson, readText } from './body.ts'
import { RequestError } from './errors.ts'
import { parse } from './parse.ts'
import { checkText } from './text.ts'

/** Parsed parts of a request; each is undefined where the endpoint declares none. */
export type Input = {
  idempotencyKey: string | undefined
  params: unknown
  query: unknown
  body: unknown
  /** How long the body took to arrive. */
  bodyMs: number
}

/** Parses a request with its endpoint's schemas. Throws RequestError 400, 413 or 415. */
export async function readRequest(ctx: Context, endpoint: Endpoint): Promise<Input> {
  checkText(ctx.query, 'The query')
  const idempotencyKey = endpoint.creates ? readIdempotencyKey(ctx) : undefined
  const params = endpoint.params && parse(endpoint.params, ctx.params, '')
  const query = endpoint.query && parse(endpoint.query, ctx.query, '')
  const begunAt = Date.now()
  const body = endpoint.body ? parse(endpoint.body, await readBody(ctx, endpoint), '') : await ignoreBody(ctx)
  return { idempotencyKey, params, query, body, bodyMs: Date.now() - begunAt }
}

function readIdempotencyKey(ctx: Context): string | undefined {
  if (!('idempotency-key' in ctx.headers)) return undefined
  const key = ctx.get('Idempotency-Key')
  if (/^[\x20-\x7e]{1,255}$/.test(key)) return key
  throw new RequestError(400, 'Idempotency-Key: must be 1 to 255 ASCII characters')
}

async function readBody(ctx: Context, endpoint: Endpoint): Promise<unknown> {
  const limitBytes = endpoint.bodyLimitBytes ?? DEFAULT_BODY_BYTES
  if (endpoint.textTypes !== undefined) return readText(ctx, limitBytes, endpoint.textTypes)
  const body = await readJson(ctx, limitBytes)
  if (body !== undefined) return body
  if (endpoint.bodyOptional) return {}
  throw new RequestError(400, 'A JSON request body is needed')
}

/** Clients send `{}` where nothing is needed; it is read, so that its limits hold, and not looked at. */
async function ignoreBody(ctx: Context): Promise<undefined> {
  if (ctx.method !== 'GET') await readJson(ctx, DEFAULT_BODY_BYTES)
  return undefined
}
