import { z } from 'zod'
import { jsonUpTo, textUpTo } from '../../../contract/kit/common.ts'
import { SentHeaders } from '../../../contract/kit/sent-headers.ts'
import type { Prisma } from '../../../prisma/generated/client.ts'
import type { Actor } from '../../kit/actor.ts'
import { checkCalledUrl } from '../../kit/called-url.ts'
import { invalid } from '../../kit/errors.ts'
import { checkReferences, namingHeaders } from '../../kit/organization-secrets/check.ts'
import { isOfService, maskHeaders, mergeHeaders } from '../../kit/sent-headers.ts'
import type { Deps } from '../deps.ts'
import type { HttpRequestInput } from './inputs.ts'
import { type CheckedInput, parseInput } from './target.ts'

const MAX_URL_BYTES = 2 * 1024
const MAX_BODY_BYTES = 256 * 1024
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
const WITHOUT_BODY = ['GET', 'HEAD']
const HEADERS_FIELD = 'target.input.headers'

const method = z
  .string()
  .toUpperCase()
  .pipe(z.enum(METHODS, { error: `must be one of ${METHODS.join(', ')}` }))

const Input = z.object({
  url: textUpTo(MAX_URL_BYTES),
  method: method.nullish(),
  headers: SentHeaders.nullish(),
  body: z.union([textUpTo(MAX_BODY_BYTES), jsonUpTo(z.unknown(), MAX_BODY_BYTES)]).optional(),
})

/** Checks the input of a request that a schedule sends, whose body is a text or any JSON. */
export async function checkHttpRequest(deps: Deps, { organizationId }: Actor, input: unknown): Promise<CheckedInput> {
  const { url, headers, body, ...given } = parseInput(Input, input)
  const method = given.method ?? (body == null ? 'GET' : 'POST')
  if (body != null && WITHOUT_BODY.includes(method)) {
    throw invalid(`target.input.body: must be left out with ${method}, or use another method`)
  }
  const called = await checkCalledUrl(deps, url, 'target.input.url')
  await checkReferences(deps.db, organizationId, namingHeaders(HEADERS_FIELD, headers ?? {}), called)
  const stored: HttpRequestInput = {
    url: called,
    method,
    headers: maskHeaders(Object.keys(headers ?? {})),
    ...(body != null && { body }),
  }
  // Parsed from JSON.
  return { input: stored as Prisma.InputJsonObject, headers: headers ?? {}, sessionId: null }
}

/** Merges a request's headers for storage, as `mergeHeaders` does. */
export const mergeRequestHeaders = (given: Record<string, string>, stored: Record<string, string>) =>
  mergeHeaders(given, stored, { field: HEADERS_FIELD, isReserved: isOfService })

/** Throws `invalid` if stored headers would be sent to another server, which would see their values. */
export function requireSameServer(url: string, storedUrl: string): void {
  if (new URL(url).origin === new URL(storedUrl).origin) return
  throw invalid(`${HEADERS_FIELD}: is required with another server, because the stored values are for the previous one`)
}
