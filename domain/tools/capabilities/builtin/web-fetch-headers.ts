import { z } from 'zod'
import { SentHeaders } from '../../../../contract/kit/sent-headers.ts'
import { check } from '../../../../contract/kit/sentences.ts'
import { isRecord } from '../../../../lib/is-record.ts'
import { matchesHost, parseHostPattern } from '../../../../lib/outgoing/host-pattern.ts'
import { invalid } from '../../../kit/errors.ts'
import { checkReferences, namingHeaders } from '../../../kit/organization-secrets/check.ts'
import { isOfService, mergeHeaders } from '../../../kit/sent-headers.ts'

const MAX_HOSTS = 20
const HeadersByHost = z
  .record(z.string(), SentHeaders)
  .refine((hosts) => Object.keys(hosts).length <= MAX_HOSTS, { error: `must have at most ${MAX_HOSTS} hosts` })

/** Headers of the configuration of `web_fetch`, by the pattern of their hosts. */
type HeadersByHost = [pattern: string, headers: Record<string, string>][]

/** Reads the headers from a configuration of `web_fetch`. Throws `invalid`, naming `field`. */
function readHeaders(config: unknown, field: string): HeadersByHost {
  if (!isRecord(config) || config.headers == null) return []
  const checked = check(HeadersByHost, config.headers, field, `${field}.`)
  if (checked.problem !== undefined) throw invalid(checked.problem)
  return Object.entries(checked.data).map(([host, headers]) => {
    const pattern = parseHostPattern(host)
    if (pattern === undefined) {
      throw invalid(`${field}: must have headers by host, such as {"api.example.com": {"X-Team": "notes"}}`)
    }
    return [pattern, mergeHeaders(headers, {}, { field: `${field}.${host}`, isReserved: isOfService })]
  })
}

/** Checks the configuration of `web_fetch` and the secrets that it names. Throws `invalid` and `unprocessable`. */
export async function checkWebFetch(
  db: Parameters<typeof checkReferences>[0],
  organizationId: string,
  config: unknown,
  field: string,
): Promise<void> {
  const texts = readHeaders(config, `${field}.headers`).flatMap(([host, headers]) =>
    namingHeaders(`${field}.headers.${host}`, headers),
  )
  await checkReferences(db, organizationId, texts)
}

/** Returns the configured headers of requests to a URL, by their lower-case names. Throws `invalid`. */
export function headersFor(config: unknown, url: string): Record<string, string> {
  const to = URL.parse(url)
  const ofHost = readHeaders(config, 'The configuration of web_fetch').filter(
    ([pattern]) => to !== null && matchesHost(pattern, to),
  )
  return Object.fromEntries(
    ofHost.flatMap(([, headers]) => Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  )
}
