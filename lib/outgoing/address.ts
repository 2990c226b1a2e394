import ipaddr from 'ipaddr.js'

/** Every address that is the internet's: what IANA has given out for hosts of the public, and nothing else. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  // An IPv4 address that is mapped into IPv6 is looked at as what it is.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast') return false
  // ipaddr.js takes what nobody has been given for unicast, among it ::/96, which once held IPv4 addresses.
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST, 3)
}

const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::')

/** Undefined for a host that is a name. WHATWG URLs have already turned 0x7f.1, 2130706433 and 0177.0.0.1 into 127.0.0.1. */
export function addressOf(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return ipaddr.isValid(host) ? host : undefined
}
