import { addressOf, isPublicAddress } from './address.ts'
import type { GuardOptions } from './guarded-agent.ts'
import { OutgoingError, privateAddress } from './outgoing-error.ts'

/** Parses the address of an outgoing request. Throws `OutgoingError` unless it is http(s) without credentials. */
export function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (url === null) throw invalidUrl('The address is no URL')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw invalidUrl('Only http and https addresses are called')
  if (url.username !== '' || url.password !== '')
    throw invalidUrl('An address with a user name or password is not called')
  return url
}

const invalidUrl = (problem: string) => new OutgoingError('invalid_url', `${problem}.`)

/** Refuses a private IP address in a URL. A name is checked by the agent, when it is resolved. */
export function checkAddress({ allowPrivateNetwork }: GuardOptions, url: URL): void {
  const address = addressOf(url)
  if (allowPrivateNetwork || address === undefined || isPublicAddress(address)) return
  throw privateAddress(url.hostname)
}
