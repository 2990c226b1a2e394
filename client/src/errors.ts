import type { ErrorCode, TurnErrorCode } from './generated/types.gen.ts'

/** Error response of the service. Its message is the service's sentence. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  /** Code of the error, for programs. Undefined if a proxy answered instead of the service. */
  readonly code: ErrorCode | undefined
  /** Path of the invalid field, if there is one. */
  readonly field: string | undefined
  /** Delay before the next attempt, as the service asks, in ms. */
  readonly retryAfterMs: number | undefined
  /** Id under which the service logged the request. */
  readonly requestId: string | undefined

  constructor(sentence: string, { status, headers }: Pick<Response, 'status' | 'headers'>, fields: ErrorBody = {}) {
    super(sentence)
    this.status = status
    // A later release of the service may have more codes.
    this.code = textOf(fields.code) as ErrorCode | undefined
    this.field = textOf(fields.field)
    this.retryAfterMs = readRetryAfter(headers)
    this.requestId = headers.get('X-Request-Id') ?? undefined
  }
}

type ErrorBody = { error?: unknown; code?: unknown; field?: unknown }

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** Turn that failed or was cancelled. Its message is the service's sentence. */
export class TurnFailed extends Error {
  override readonly name = 'TurnFailed'
  /** Code of the service, or the client's own: `failed` where the service gave none. */
  readonly code: TurnErrorCode | 'cancelled' | 'session_deleted' | 'no_message' | 'failed'

  constructor(code: TurnFailed['code'], sentence: string) {
    super(sentence)
    this.code = code
  }
}

/** Returns the error of a response whose body has been read, parsed or not. */
export function toApiError(response: Response, body: unknown): ApiError {
  const fields: ErrorBody = typeof body === 'object' && body !== null ? body : {}
  return new ApiError(textOf(fields.error) ?? `The service answered ${response.status}`, response, fields)
}

/** Reads the body of a failed response. */
export async function readApiError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '')
  try {
    return toApiError(response, JSON.parse(text))
  } catch {
    return toApiError(response, text)
  }
}

/** Reads Retry-After, which is a number of seconds, or a date of the service's clock. */
function readRetryAfter(headers: Headers): number | undefined {
  const header = headers.get('Retry-After')
  if (header === null) return undefined
  const seconds = Number(header)
  const ms = Number.isNaN(seconds)
    ? Date.parse(header) - (Date.parse(headers.get('Date') ?? '') || Date.now())
    : seconds * 1000
  return Number.isNaN(ms) ? undefined : Math.max(ms, 0)
}
