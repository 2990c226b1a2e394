import type { Controls } from './controls.ts'
import type { FaultKind } from './faults.ts'
import type { Servers } from './servers.ts'
import type { Network, Site, Slot } from './site.ts'

/** Ends a fault. */
export type Release = () => Promise<void>

/** Parts of a world to which faults happen. */
export type Stage = { site: Site; servers: Servers; controls: Controls; clocks: number[] }

/** Has a fault happen to a slot. Resolves when it is in force; without an end if what it happens to is away already. */
type Effect = (stage: Stage, slot: Slot, lastsMs: number) => Promise<Release | undefined>

const MINUTE_MS = 60_000
const MAX_MINUTES = 10

const onProcess =
  (begin: (site: Site, slot: Slot) => unknown, end: (site: Site, slot: Slot) => void): Effect =>
  async ({ site }, slot) => {
    if (slot.process === undefined) return undefined
    await begin(site, slot)
    return async () => end(site, slot)
  }

const onNetwork =
  (to: keyof Network, how: 'cut' | 'freeze'): Effect =>
  async (_, slot) => {
    const proxy = slot.network[to]
    if (slot.process === undefined || slot.cuts.has(to)) return undefined
    proxy[how]()
    slot.cuts.add(to)
    return async () => {
      // Connections that carried nothing are closed, as by a host that is back.
      proxy.cut()
      proxy.mend()
      slot.cuts.delete(to)
    }
  }

const onServer =
  (name: keyof Network): Effect =>
  async ({ servers }) => {
    if (!servers[name].isUp()) return undefined
    await servers[name].kill()
    return () => servers[name].start()
  }

const moveClock: Effect = async ({ controls, clocks }, { number }, lastsMs) => {
  const usual = clocks[number] ?? 0
  const minutes = 1 + (lastsMs % MAX_MINUTES)
  controls.setClock(number, usual + (lastsMs % 2 === 0 ? minutes : -minutes) * MINUTE_MS)
  return async () => controls.setClock(number, usual)
}

/** Effects of the kinds of faults. */
export const EFFECTS: Record<FaultKind, Effect> = {
  kill: onProcess(
    (site, slot) => site.kill(slot),
    (site, { role }) => site.bringBack(role),
  ),
  freeze: onProcess(
    (site, slot) => site.freeze(slot),
    (site, slot) => site.thaw(slot),
  ),
  'cut-postgres': onNetwork('postgres', 'cut'),
  'cut-redis': onNetwork('redis', 'cut'),
  'cut-temporal': onNetwork('temporal', 'cut'),
  'mute-postgres': onNetwork('postgres', 'freeze'),
  'mute-redis': onNetwork('redis', 'freeze'),
  'mute-temporal': onNetwork('temporal', 'freeze'),
  'redis-flushed': async ({ servers }) => {
    await servers.flushRedis()
    return async () => {}
  },
  'redis-killed': onServer('redis'),
  'postgres-restarted': onServer('postgres'),
  'temporal-restarted': onServer('temporal'),
  clock: moveClock,
  'full-disk': async ({ servers }) => {
    await servers.fill()
    return () => servers.empty()
  },
}
