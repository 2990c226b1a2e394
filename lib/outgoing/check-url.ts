import { sleep } from '../sleep.ts'
import { addressOf, isPublicAddress } from './address.ts'
import { type GuardOptions, resolveBySystem } from './guarded-agent.ts'
import { privateAddress } from './outgoing-error.ts'
import { checkAddress, parseUrl } from './outgoing-url.ts'

const RESOLVE_TIMEOUT_MS = 2000
/** Names of this machine, whatever the resolver says. */
const LOCAL_NAME = /^((.+\.)?localhost(\.localdomain)?|ip6-(localhost|loopback))\.?$/

/**
 * Checks an address before it is stored. Throws `OutgoingError` if it can never be called. A name that does not resolve
 * now is accepted: names are checked again with each connection.
 */
export async function checkUrl(options: GuardOptions, text: string): Promise<void> {
  const url = parseUrl(text)
  if (options.allowPrivateNetwork) return
  checkAddress(options, url)
  if (addressOf(url) !== undefined) return
  if (LOCAL_NAME.test(url.hostname)) throw privateAddress(url.hostname)
  const addresses = await resolveSoon(options, url.hostname)
  if (addresses.length > 0 && !addresses.some(isPublicAddress)) throw privateAddress(url.hostname)
}

/** Resolves a name within 2 s. Returns no addresses when that fails. */
async function resolveSoon({ resolve = resolveBySystem }: GuardOptions, host: string): Promise<string[]> {
  const resolved = new AbortController()
  const late = sleep(RESOLVE_TIMEOUT_MS, resolved.signal).then(() => [])
  const addresses = await Promise.race([resolve(host).catch(() => []), late])
  resolved.abort()
  return addresses.map(({ address }) => address)
}
