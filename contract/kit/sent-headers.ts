import { z } from 'zod'
import { textUpTo } from './common.ts'

export const MAX_HEADER_VALUE_BYTES = 8 * 1024
const MAX_HEADERS = 100
const MAX_HEADER_NAME = 255

const headerName = z
  .string()
  .max(MAX_HEADER_NAME, { error: `must have a name of at most ${MAX_HEADER_NAME} characters` })
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error: 'is not a valid header name' })

/** Headers of requests to another server. Their values may be secrets. */
export const SentHeaders = z
  .record(
    headerName,
    textUpTo(MAX_HEADER_VALUE_BYTES).regex(/^[\t\x20-\x7e]*$/, { error: 'must be printable ASCII characters' }),
  )
  .refine((values) => Object.keys(values).length <= MAX_HEADERS, { error: `must have at most ${MAX_HEADERS} headers` })
