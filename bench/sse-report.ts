import { goal, print } from './report.ts'

type Times = { p50: number; p99: number }

/**
 * Results of a relay. Bytes are per stream, CPU per delivered event. `clientMs` is from the start of an append to the
 * client, `relayMs` from its end. `busy` is the share of one core that the process used; far below 1 means that the
 * load was slower than the relay.
 */
export type Relayed = {
  liveBytes: number
  residentBytes: number
  /** Resident memory of the first streams of a new process, and of streams that have carried the load. */
  firstResidentBytes: number
  usedResidentBytes: number
  appendMs: Times
  clientMs: Times
  relayMs: Times
  perSecond: number
  cpuUs: number
  busy: number
}
export type Rate = { perSecond: number; megabytesPerSecond: number }
export type Measured = { relayed: Relayed; replayed: Rate }
export type Others = { listed: Rate; withoutCalls: Rate }

/** Prints the results and the goals; returns true when all are met. */
export function reportSse(floor: Measured, service: Measured, others: Others): boolean {
  const row = (name: string, unit: string, of: (relayed: Relayed) => number, digits = 1) =>
    print(
      `${name.padEnd(44)}${[floor.relayed, service.relayed].map((one) => of(one).toFixed(digits).padStart(10)).join('')}  ${unit}`,
    )
  print(`${'2,000 streams on one process'.padEnd(44)}     floor   service`)
  row('a stream, what is reachable', 'KB', ({ liveBytes }) => liveBytes / 1000)
  row('a stream, resident memory', 'KB', ({ residentBytes }) => residentBytes / 1000)
  row('the first streams of a process, resident', 'KB', ({ firstResidentBytes }) => firstResidentBytes / 1000)
  row('streams after all this load, resident', 'KB', ({ usedResidentBytes }) => usedResidentBytes / 1000)
  row('1,000 events/s: the append alone, p50', 'ms', ({ appendMs }) => appendMs.p50)
  row('1,000 events/s: the append alone, p99', 'ms', ({ appendMs }) => appendMs.p99)
  row('1,000 events/s: append to client, p50', 'ms', ({ clientMs }) => clientMs.p50)
  row('1,000 events/s: append to client, p99', 'ms', ({ clientMs }) => clientMs.p99)
  row('1,000 events/s: of that the relay, p50', 'ms', ({ relayMs }) => relayMs.p50)
  row('1,000 events/s: of that the relay, p99', 'ms', ({ relayMs }) => relayMs.p99)
  row('relayed at most, without a record', 'events/s', ({ perSecond }) => perSecond, 0)
  row('of a core, meanwhile', '%', ({ busy }) => busy * 100, 0)
  row('CPU for a delivered event', 'us', ({ cpuUs }) => cpuUs)
  const rate = (name: string, { perSecond, megabytesPerSecond }: Rate) =>
    print(`${name.padEnd(54)}${perSecond.toFixed(0).padStart(10)}  events/s, ${megabytesPerSecond.toFixed(0)} MB/s`)
  rate('100,000 events: their stored rows, by the floor', floor.replayed)
  rate('100,000 events, streamed', service.replayed)
  rate('100,000 events, listed', others.listed)
  rate('100,000 events, streamed without llm.generation', others.withoutCalls)
  const { relayMs, clientMs, perSecond, residentBytes } = service.relayed
  const ratio = perSecond / floor.relayed.perSecond
  const cpuRatio = floor.relayed.cpuUs / service.relayed.cpuUs
  return [
    goal(residentBytes <= 25_000, 'a stream takes at most 25 KB of resident memory'),
    goal(relayMs.p99 <= 20, 'from the recorded append to the client in at most 20 ms at 1,000 events/s, p99'),
    goal(clientMs.p99 <= 20, 'and the append included'),
    goal(perSecond >= 10_000, 'at least 10,000 events are delivered a second'),
    goal(
      ratio >= 0.5,
      `and at least half of what the floor delivers: ${ratio.toFixed(2)} (for the same CPU ${cpuRatio.toFixed(2)})`,
    ),
    goal(service.replayed.perSecond >= 20_000, 'at least 20,000 events are replayed a second'),
  ].every(Boolean)
}
