import ipaddr from 'ipaddr.js'
import { addressOf } from './address.ts'

type Range = [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number]

/** Host of a private network that may be called: by a name, or by addresses, at one port or at all. */
export type AllowedHost = { name?: string; range?: Range; port?: number }

/** Address that a host's name resolves to, or that replaces the name in a URL. */
export type Target = { host: string; address: string; port: number }

const BRACKETED = /^\[([^[\]]+)\](?::(\d{1,5}))?$/
const PLAIN = /^([^:[\]]+)(?::(\d{1,5}))?$/
const NAME = /^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/

/**
 * Parses a name, an address or a CIDR block, with a port after a colon if only that one is meant. An IPv6 address with a
 * port stands in brackets. Returns undefined for anything else.
 */
export function parseAllowedHost(text: string): AllowedHost | undefined {
  const [, host = text, digits] = BRACKETED.exec(text) ?? PLAIN.exec(text) ?? []
  const port = digits === undefined ? {} : { port: Number(digits) }
  if (port.port === 0 || (port.port ?? 1) > 65_535) return undefined
  if (host.includes('/')) return isWholeBlock(host) ? { range: ipaddr.parseCIDR(host), ...port } : undefined
  // URLs write addresses and international names in one way each.
  const url = URL.parse(`http://${host.includes(':') ? `[${host}]` : host}`)
  if (url === null || /[/?#@%\s]/.test(host)) return undefined
  const address = addressOf(url)
  if (address !== undefined) return { range: wholeRange(ipaddr.process(address)), ...port }
  const name = withoutDot(url.hostname)
  return NAME.test(name) ? { name, ...port } : undefined
}

/** Whether a CIDR block is written out: `10/8` would be read as 0.0.0.10/8. */
const isWholeBlock = (text: string): boolean =>
  ipaddr.isValidCIDR(text) && (text.includes(':') || ipaddr.IPv4.isValidCIDRFourPartDecimal(text))

const wholeRange = (address: Range[0]): Range => [address, address.kind() === 'ipv4' ? 32 : 128]

const withoutDot = (host: string): string => host.replace(/\.$/, '')

export function isAllowed(allowed: AllowedHost[], { host, address, port }: Target): boolean {
  if (allowed.length === 0) return false
  const name = withoutDot(host)
  const ip = ipaddr.process(address)
  return allowed.some((one) => {
    if (one.port !== undefined && one.port !== port) return false
    if (one.range === undefined) return one.name === name
    return one.range[0].kind() === ip.kind() && ip.match(one.range)
  })
}
