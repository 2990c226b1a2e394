import { addressOf } from './address.ts'
import { type GuardOptions, isMetadataName, metadataService, refusalOf } from './guard.ts'
import { OutgoingError } from './outgoing-error.ts'

/** Parses the address of an outgoing request. Throws `OutgoingError` unless it is http(s) without credentials. */
export function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (url === null) throw invalidUrl('The address is not a valid URL')
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw invalidUrl('Only http and https addresses are called')
  if (url.username !== '' || url.password !== '')
    throw invalidUrl('An address with a user name or password is not called')
  return url
}

const invalidUrl = (problem: string) => new OutgoingError('invalid_url', `${problem}.`)

/** Returns the port of a URL, or its protocol's default. */
export const portOf = ({ protocol, port }: { protocol: string; port: string }): number =>
  Number(port) || (protocol === 'https:' ? 443 : 80)

/** Refuses an IP address in a URL that may not be called. A name is checked by the agent, when it is resolved. */
export function checkAddress(guard: GuardOptions, url: URL): void {
  const address = addressOf(url)
  if (address === undefined && !isMetadataName(url.hostname)) return
  const refusal =
    address === undefined
      ? metadataService(url.hostname)
      : refusalOf(guard, { host: url.hostname, address, port: portOf(url) })
  if (refusal !== undefined) throw refusal
}
