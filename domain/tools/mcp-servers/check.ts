import { invalid } from '../../kit/errors.ts'
import { checkReferences, namingHeaders } from '../../kit/organization-secrets/check.ts'
import { mergeHeaders } from '../../kit/sent-headers.ts'
import type { Credentials } from './credentials.ts'

/** Headers that the transport sets, or that end or frame a message. */
const OF_TRANSPORT =
  /^(accept|accept-encoding|connection|content-.*|expect|host|keep-alive|last-event-id|mcp-.*|proxy-.*|te|trailer|transfer-encoding|upgrade)$/

/** Merges a server's headers for storage, as `mergeHeaders` does. */
export const mergeServerHeaders = (given: Record<string, string>, stored: Record<string, string>) =>
  mergeHeaders(given, stored, { field: 'headers', isReserved: (name) => OF_TRANSPORT.test(name) })

/** Throws `invalid` for credentials that cannot be sent together. */
export function checkCredentials({ apiKey, headers }: Credentials): void {
  if (apiKey !== '' && Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')) {
    throw invalid('headers: must not have Authorization beside api_key, which is sent in it; give one of them')
  }
}

/** Given credentials, as a request has them. */
type Given = { api_key?: string | null | undefined; headers?: Record<string, string> | null | undefined }

/** Checks the secrets that given credentials name, as `checkReferences` does. */
export const checkSecrets = (
  db: Parameters<typeof checkReferences>[0],
  organizationId: string,
  { api_key, headers }: Given,
  url: string,
): Promise<void> =>
  checkReferences(
    db,
    organizationId,
    [{ field: 'api_key', text: api_key ?? '' }, ...namingHeaders('headers', headers ?? {})],
    url,
  )
