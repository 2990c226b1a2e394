import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { Agent } from 'undici'
import { isPublicAddress } from './address.ts'
import { privateAddress } from './outgoing-error.ts'

/** All addresses of a host, as the system knows them. */
export type Resolve = (host: string) => Promise<LookupAddress[]>

export type GuardOptions = {
  allowPrivateNetwork: boolean
  /** For tests of what a name server may answer. */
  resolve?: Resolve
}

const CONNECT_TIMEOUT_MS = 10_000

/**
 * Connections that reach public addresses only. Names are checked where they are resolved for the connection itself, so
 * that no second answer of a name server can differ from the one that was checked. An address in the URL is not
 * resolved: whoever uses this checks it before (`addressOf`).
 */
export const createGuardedAgent = (options: GuardOptions): Agent =>
  new Agent({ connect: { lookup: guardedLookup(options), timeout: CONNECT_TIMEOUT_MS } })

const guardedLookup =
  (guard: GuardOptions): LookupFunction =>
  (host, options, callback) => {
    const resolve = guard.resolve ?? resolveBySystem
    resolve(host).then(
      (all) => {
        // Those that may not be called are left out, so that a host with both is reached.
        const addresses = guard.allowPrivateNetwork ? all : all.filter(({ address }) => isPublicAddress(address))
        const [first] = addresses
        if (first === undefined) callback(privateAddress(host), '')
        else if (options.all) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error) => callback(error, ''),
    )
  }

const resolveBySystem: Resolve = (host) =>
  new Promise((resolve, reject) => {
    systemLookup(host, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)))
  })
