import { z } from 'zod'

/** Code of an error, for programs; the sentence is for people. Codes are only added, never removed. */
export const ErrorCode = z
  .enum([
    'invalid',
    'unauthenticated',
    'forbidden',
    'not_found',
    'method_not_allowed',
    'timed_out',
    'conflict',
    'idempotency_key_reused',
    'not_waiting',
    'quota_exceeded',
    'session_busy',
    'too_large',
    'unsupported_media_type',
    'no_such_range',
    'expectation_failed',
    'unprocessable',
    'too_many',
    'queue_full',
    'too_many_streams',
    'internal',
    'bad_gateway',
    'unavailable',
    'overloaded',
  ])
  .meta({ id: 'ErrorCode' })
export type ErrorCode = z.infer<typeof ErrorCode>

/** Code of a failed turn. */
export const TurnErrorCode = z
  .enum([
    'llm_error',
    'no_model',
    'max_iterations',
    'max_tool_calls',
    'max_output_tokens',
    'turn_too_old',
    'answer_too_long',
    'too_many_tool_calls',
    'budget_exceeded',
    'price_unknown',
    'output_invalid',
    'timeout',
    'internal_error',
  ])
  .meta({ id: 'TurnErrorCode' })
export type TurnErrorCode = z.infer<typeof TurnErrorCode>

/** Outcome of a tool call. */
export const ToolCallStatus = z.enum(['success', 'error', 'timeout', 'cancelled']).meta({ id: 'ToolCallStatus' })

/** Reason why the service ends a stream, in its frame `disconnecting`. */
export const DisconnectReason = z.enum([
  'connection_cycle',
  'shutdown',
  'slow_consumer',
  'credential_ended',
  'session_deleted',
])

export const ErrorResponse = z
  .object({
    error: z.string().meta({ description: 'A sentence for people, which may change.' }),
    code: ErrorCode,
    field: z.string().optional().meta({ description: 'Path of the invalid field, if there is exactly one.' }),
  })
  .meta({ id: 'ErrorResponse' })
export type ErrorResponse = z.infer<typeof ErrorResponse>

/** Default code of each error status. */
const CODES: Record<number, ErrorCode> = {
  400: 'invalid',
  401: 'unauthenticated',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'timed_out',
  409: 'conflict',
  413: 'too_large',
  415: 'unsupported_media_type',
  416: 'no_such_range',
  417: 'expectation_failed',
  422: 'unprocessable',
  429: 'too_many',
  431: 'too_large',
  500: 'internal',
  502: 'bad_gateway',
  503: 'unavailable',
}

/** Field at the start of a sentence, as in `name: is required`. A sentence about several fields has none. */
const FIELD = /^([\w-]+(?:\.[^\s:]+)*): (?!.*; [\w-]+(?:\.[^\s:]+)*: )/s

/** Returns the body of an error. Its field defaults to the field at the start of its sentence. */
export function describeError(
  status: number,
  error: string,
  code = CODES[status] ?? 'invalid',
  field = FIELD.exec(error)?.[1],
): ErrorResponse {
  return { error, code, ...(field !== undefined && { field }) }
}
