import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { Agent } from 'undici'
import { isPublicAddress } from './address.ts'
import { privateAddress } from './outgoing-error.ts'

/** Resolves a host name to all of its addresses. */
export type Resolve = (host: string) => Promise<LookupAddress[]>

export type GuardOptions = {
  allowPrivateNetwork: boolean
  /** Replaces the system's resolver in tests of what a name server may answer. */
  resolve?: Resolve
}

const CONNECT_TIMEOUT_MS = 10_000

/**
 * Creates an agent that connects to public addresses only. Names are checked when they are resolved for the connection
 * itself, so that no second answer of a name server can differ from the one checked. An address in the URL is not
 * resolved: callers must check it first, see `addressOf`.
 */
export const createGuardedAgent = (options: GuardOptions, agent: Agent.Options = {}): Agent =>
  new Agent({ ...agent, connect: { lookup: guardedLookup(options), timeout: CONNECT_TIMEOUT_MS } })

const guardedLookup =
  (guard: GuardOptions): LookupFunction =>
  (host, options, callback) => {
    const resolve = guard.resolve ?? resolveBySystem
    resolve(host).then(
      (all) => {
        // Drop the private addresses, so that a host with both kinds is still reached.
        const addresses = guard.allowPrivateNetwork ? all : all.filter(({ address }) => isPublicAddress(address))
        const [first] = addresses
        if (first === undefined) callback(privateAddress(host), '')
        else if (options.all) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error) => callback(error, ''),
    )
  }

export const resolveBySystem: Resolve = (host) =>
  new Promise((resolve, reject) => {
    systemLookup(host, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })
