import { lookup as systemLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { type GuardOptions, type Resolve, refusalOf } from './guard.ts'
import { portOf } from './outgoing-url.ts'

const CONNECT_TIMEOUT_MS = 10_000
const MAX_PORTS = 100

/**
 * Creates an agent that connects to the addresses that its guard allows. Names are checked when they are resolved for
 * the connection itself, so that no second answer of a name server can differ from the one checked. An address in the
 * URL is not resolved: callers must check it first, see `checkAddress`.
 */
export const createGuardedAgent = (guard: GuardOptions, agent: Agent.Options = {}): Agent =>
  new Agent({ ...agent, connect: guardedConnector(guard, agent) })

/** Connects by a connector for each port, because a look-up is not told the port. */
function guardedConnector(guard: GuardOptions, { allowH2 }: Agent.Options): buildConnector.connector {
  const connectors = new Map<number, buildConnector.connector>()
  return (options, callback) => {
    const port = portOf(options)
    const connect =
      connectors.get(port) ??
      buildConnector({ allowH2, lookup: guardedLookup(guard, port), timeout: CONNECT_TIMEOUT_MS })
    if (connectors.size < MAX_PORTS) connectors.set(port, connect)
    connect(options, callback)
  }
}

const guardedLookup =
  (guard: GuardOptions, port: number): LookupFunction =>
  (host, options, callback) => {
    const resolve = guard.resolve ?? resolveBySystem
    resolve(host).then(
      (all) => {
        const refusals = all.map(({ address }) => refusalOf(guard, { host, address, port }))
        // Drop the refused addresses, so that a host with both kinds is still reached.
        const addresses = all.filter((_, at) => refusals[at] === undefined)
        const [first] = addresses
        if (first === undefined) callback(refusals[0] ?? new Error(`${host} has no address.`), '')
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
