import type { ErrorForm } from '../../http/errors.ts'

const TYPES: Record<number, string> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
}

/** Makes the body of an error as clients of this protocol read it. */
export const openaiError: ErrorForm = (status, { error: message, code, field }) => ({
  error: {
    message,
    type: TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error'),
    param: field ?? null,
    code: field === 'model' && status === 404 ? 'model_not_found' : code,
  },
})
