import { sleep } from '../sleep.ts'
import { addressOf } from './address.ts'
import { type GuardOptions, refusalOf } from './guard.ts'
import { resolveBySystem } from './guarded-agent.ts'
import { checkAddress, parseUrl, portOf } from './outgoing-url.ts'

const RESOLVE_TIMEOUT_MS = 2000
/** Names of this machine, regardless of the resolver. */
const LOCAL_NAME = /^((.+\.)?localhost(\.localdomain)?|ip6-(localhost|loopback))\.?$/
const LOCAL_ADDRESSES = ['127.0.0.1', '::1']

/**
 * Checks an address before it is stored. Throws `OutgoingError` if it can never be called. A name that does not resolve
 * now is accepted: names are checked again with each connection.
 */
export async function checkUrl(guard: GuardOptions, text: string): Promise<void> {
  const url = parseUrl(text)
  checkAddress(guard, url)
  if (addressOf(url) !== undefined) return
  const host = url.hostname
  const addresses = LOCAL_NAME.test(host) ? LOCAL_ADDRESSES : await resolveSoon(guard, host)
  const refusals = addresses.map((address) => refusalOf(guard, { host, address, port: portOf(url) }))
  if (refusals[0] !== undefined && refusals.every((refusal) => refusal !== undefined)) throw refusals[0]
}

/** Resolves a name within 2 s. Returns no addresses when that fails, or when a private one would be called as well. */
async function resolveSoon(
  { allowPrivateNetwork, resolve = resolveBySystem }: GuardOptions,
  host: string,
): Promise<string[]> {
  if (allowPrivateNetwork) return []
  const resolved = new AbortController()
  const late = sleep(RESOLVE_TIMEOUT_MS, resolved.signal).then(() => [])
  const addresses = await Promise.race([resolve(host).catch(() => []), late])
  resolved.abort()
  return addresses.map(({ address }) => address)
}
