import type { LookupAddress } from 'node:dns'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { isPublicAddress } from './address.ts'
import { type AllowedHost, isAllowed, type Target } from './allowed-host.ts'
import { OutgoingError } from './outgoing-error.ts'

/** Resolves a host name to all of its addresses. */
export type Resolve = (host: string) => Promise<LookupAddress[]>

/** The addresses that may be called. */
export type GuardOptions = {
  allowPrivateNetwork: boolean
  /** Hosts that may be called although their addresses are private. */
  allowedHosts?: AllowedHost[]
  /** Ports at which this service listens on this machine. More may be added while the guard is in use. */
  ownPorts?: Set<number>
  /** Identity of this service, which every request carries, so that the service refuses its own wherever they arrive. */
  serviceId?: string
  /** Returns the place in a trace that a request is sent with, unless it names its own. */
  traceparent?: (() => string | undefined) | undefined
  /** Replaces the system's resolver, for tests of hostile name servers. */
  resolve?: Resolve
}

/** Header of all outgoing requests. */
export const SERVICE_HEADER = 'x-agent-session-service'

/** Returns why an address may not be called, undefined when it may. */
export function refusalOf(guard: GuardOptions, target: Target): OutgoingError | undefined {
  const { host, address, port } = target
  if (isMetadata(address)) return metadataService(host)
  if (guard.ownPorts?.has(port) && isOfThisMachine(address)) {
    return refused(`${host}:${port} is an address of this service itself, which is never called.`)
  }
  if (guard.allowPrivateNetwork || isPublicAddress(address)) return undefined
  if (isAllowed(guard.allowedHosts ?? [], target)) return undefined
  return refused(
    `${host} is not on the public internet; other addresses are called only if ALLOWED_PRIVATE_HOSTS lists them or ALLOW_PRIVATE_NETWORK is true.`,
  )
}

const refused = (sentence: string) => new OutgoingError('private_address', sentence)

export const metadataService = (host: string) =>
  refused(`${host} is an address of a cloud's metadata service, which is never called.`)

/**
 * Metadata services of clouds, which give credentials to any caller. AWS, Google, Azure, Oracle, DigitalOcean, OpenStack,
 * Tencent and containers (169.254.170.2, .23) have theirs on link-local addresses.
 */
const METADATA = [
  '169.254.0.0/16',
  'fe80::/10',
  // AWS: Instance metadata service, EKS Pod Identity and DNS over IPv6.
  'fd00:ec2::/32',
  // Google: Compute Engine, "Access VM metadata", IPv6.
  'fd20:ce::254/128',
  // Alibaba Cloud: ECS, "Instance metadata".
  '100.100.100.200/32',
  // Oracle Cloud Infrastructure Classic.
  '192.0.0.192/32',
  // Azure: "What is IP address 168.63.129.16?", WireServer.
  '168.63.129.16/32',
].map((block) => ipaddr.parseCIDR(block))

/** Names of metadata services, regardless of their addresses. */
const METADATA_NAME = /^(metadata|metadata\.google\.internal|metadata\.goog|instance-data(\.ec2\.internal)?)\.?$/

export const isMetadataName = (host: string): boolean => METADATA_NAME.test(host)

function isMetadata(text: string): boolean {
  const address = inIPv4(ipaddr.process(text))
  return METADATA.some((block) => block[0].kind() === address.kind() && address.match(block))
}

/** Blocks whose addresses end with the IPv4 address that they stand for (RFC 6052, 8215, 2765, 4291). */
const ENDING_IN_IPV4 = ['64:ff9b::/96', '64:ff9b:1::/48', '::ffff:0:0:0/96', '::/96'].map((block) =>
  ipaddr.IPv6.parseCIDR(block),
)
const SIX_TO_FOUR = ipaddr.IPv6.parseCIDR('2002::/16')

/** Returns the IPv4 address that a gateway would call for an IPv6 address, or the address itself. */
function inIPv4(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address instanceof ipaddr.IPv4 || ['loopback', 'unspecified'].includes(address.range())) return address
  const bytes = address.toByteArray()
  if (address.match(SIX_TO_FOUR)) return new ipaddr.IPv4(bytes.slice(2, 6))
  return ENDING_IN_IPV4.some((block) => address.match(block)) ? new ipaddr.IPv4(bytes.slice(12)) : address
}

function isOfThisMachine(text: string): boolean {
  const address = inIPv4(ipaddr.process(text))
  if (['loopback', 'unspecified'].includes(address.range())) return true
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return own.some((one) => ipaddr.process(one.address).toNormalizedString() === address.toNormalizedString())
}
