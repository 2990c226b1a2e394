import dns, { type LookupAddress, type LookupAllOptions } from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

type Callback = (error: Error | null, addresses: LookupAddress[]) => void

export type NameServer = {
  /** Answers the look-ups of a name with these addresses in turn, and then always with the last. */
  answer(name: string, ...addresses: string[]): void
  stop(): void
}

/** Replaces the system's resolver in this process by a name server that changes its answers. */
export function startNameServer(): NameServer {
  const names = new Map<string, string[]>()
  const { lookup } = dns
  const replace = (replacement: unknown) => {
    Object.assign(dns, { lookup: replacement })
    syncBuiltinESMExports()
  }
  replace((host: string, options: LookupAllOptions, callback: Callback) => {
    const addresses = names.get(host)
    if (addresses === undefined) return lookup(host, options, callback)
    const address = (addresses.length > 1 ? addresses.shift() : addresses[0]) ?? ''
    setImmediate(callback, null, [{ address, family: 4 }])
  })
  return {
    answer: (name, ...addresses) => names.set(name, addresses),
    stop: () => replace(lookup),
  }
}
