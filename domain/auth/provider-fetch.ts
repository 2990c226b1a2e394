import type { CustomFetch } from 'openid-client'
import { badGateway } from '../errors.ts'

const DEFAULT_TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 1024 * 1024
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** As openid-client calls it. */
export type ProviderFetch = CustomFetch

/**
 * How identity providers are asked: with a limit on time and on the answer's size, and no further than the address that
 * was asked. Throws `bad_gateway` for everything but an answer that says something, 2xx or 4xx.
 */
export function createProviderFetch(timeoutMs = DEFAULT_TIMEOUT_MS): ProviderFetch {
  return async (url, { method, headers, body }) => {
    const { protocol, hostname } = new URL(url)
    // What a provider names as its own addresses, too: a secret goes there.
    if (protocol !== 'https:' && !(protocol === 'http:' && LOOPBACK.test(hostname))) throw noAnswer()
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      const answer = await fetch(url, { method, headers, body, signal, redirect: 'manual' })
      const { status } = answer
      if (!answer.ok && (status < 400 || status > 499 || status === 429)) {
        await answer.body?.cancel()
        throw noAnswer()
      }
      const contentType = answer.headers.get('content-type') ?? ''
      return new Response(await readUpTo(answer, MAX_ANSWER_BYTES), {
        status,
        headers: { 'content-type': contentType },
      })
    } catch {
      // The reasons name addresses and come in many kinds; a caller can do nothing about any of them.
      throw noAnswer()
    }
  }
}

export const noAnswer = () => badGateway('The identity provider does not answer')

/** Throws for what is longer; nothing beyond the limit is read. */
async function readUpTo(answer: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | null> {
  if (answer.body === null) return null
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop closes the connection.
  for await (const chunk of answer.body) {
    size += chunk.length
    if (size > maxBytes) throw noAnswer()
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}
