import type { CustomFetch } from 'openid-client'
import { isLoopback } from '../../../lib/loopback.ts'
import { badGateway, DomainError } from '../../kit/errors.ts'
import type { ClientOptions } from './identity-provider.ts'

const DEFAULT_TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 1024 * 1024

type FetchOptions = Pick<ClientOptions, 'timeoutMs' | 'report'>

/** A fetch function as openid-client calls it. */
export type ProviderFetch = CustomFetch

/**
 * Creates the fetch function for identity providers. It limits the time and the size of an answer, and does not follow
 * redirects. It throws `bad_gateway` except for a status of 2xx, or 4xx other than 429.
 */
export function createProviderFetch({ timeoutMs = DEFAULT_TIMEOUT_MS, report }: FetchOptions): ProviderFetch {
  return async (url, { method, headers, body }) => {
    const { protocol, hostname, host } = new URL(url)
    // Applies also to the endpoints that a provider announces, because they receive secrets.
    if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname))) {
      report?.({ host, reason: 'an address that is not https' })
      throw noAnswer()
    }
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      const answer = await fetch(url, { method, headers, body, signal, redirect: 'manual' })
      const { status } = answer
      if (!answer.ok && (status < 400 || status > 499 || status === 429)) {
        report?.({ host, status })
        await answer.body?.cancel()
        throw noAnswer()
      }
      const contentType = answer.headers.get('content-type') ?? ''
      return new Response(await readUpTo(answer, MAX_ANSWER_BYTES), {
        status,
        headers: { 'content-type': contentType },
      })
    } catch (error) {
      // The causes vary, and a caller can do nothing about any of them.
      if (!(error instanceof DomainError)) report?.({ host, reason: reasonOf(error) })
      throw noAnswer()
    }
  }
}

/** Returns the reason for a failed fetch, which only the error's cause has. */
function reasonOf(error: unknown): string {
  const { name, cause } = error as { name?: string; cause?: { code?: string } }
  return cause?.code ?? name ?? 'unknown'
}

export const noAnswer = () => badGateway('The identity provider does not answer')

/** Reads a body. Throws RangeError, and stops reading, when it exceeds `maxBytes`. */
async function readUpTo(answer: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | null> {
  if (answer.body === null) return null
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop closes the connection.
  for await (const chunk of answer.body) {
    size += chunk.length
    if (size > maxBytes) throw new RangeError('The body exceeds its size limit')
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}
