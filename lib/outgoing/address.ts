import ipaddr from 'ipaddr.js'

/** Returns whether IANA has assigned an address to hosts on the public internet. False for any other text. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  // An IPv4 address mapped into IPv6 is checked as IPv4.
  const address = ipaddr.process(text)
  if (address.range() !== 'unicast') return false
  // ipaddr.js reports unassigned addresses as unicast, among them ::/96, which once held IPv4 addresses.
  return address instanceof ipaddr.IPv4 || address.match(GLOBAL_UNICAST, 3)
}

const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::')

/**
 * Returns the IP address in a URL's host, undefined when the host is a name. WHATWG URLs have already turned 0x7f.1,
 * 2130706433 and 0177.0.0.1 into 127.0.0.1.
 */
export function addressOf(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return ipaddr.isValid(host) ? host : undefined
}
