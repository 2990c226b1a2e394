import { goal, print } from './report.ts'

type Times = { p50: number; p99: number }

/** Bytes are of one stream, CPU of one delivered event. `clientMs`: from the begin of an append to the client. */
export type Relayed = {
  liveBytes: number
  residentBytes: number
  appendMs: Times
  clientMs: Times
  perSecond: number
  cpuUs: number
}
export type Rate = { perSecond: number; megabytesPerSecond: number }
export type Replayed = { stream: Rate; list: Rate; streamWithoutCalls: Rate }

/** Prints what was measured and the goals; true when all are met. */
export function reportSse(floor: Relayed, service: Relayed, replay: Replayed): boolean {
  const row = (name: string, unit: string, of: (relayed: Relayed) => number, digits = 1) =>
    print(`${name.padEnd(44)}${[floor, service].map((one) => of(one).toFixed(digits).padStart(10)).join('')}  ${unit}`)
  print(`${'2,000 streams on one process'.padEnd(44)}     floor   service`)
  row('a stream, what is reachable', 'KB', ({ liveBytes }) => liveBytes / 1000)
  row('a stream, resident memory', 'KB', ({ residentBytes }) => residentBytes / 1000)
  row('1,000 events/s: the append alone, p50', 'ms', ({ appendMs }) => appendMs.p50)
  row('1,000 events/s: the append alone, p99', 'ms', ({ appendMs }) => appendMs.p99)
  row('1,000 events/s: append to client, p50', 'ms', ({ clientMs }) => clientMs.p50)
  row('1,000 events/s: append to client, p99', 'ms', ({ clientMs }) => clientMs.p99)
  row('relayed at most', 'events/s', ({ perSecond }) => perSecond, 0)
  row('CPU for a delivered event', 'us', ({ cpuUs }) => cpuUs)
  const rate = (name: string, { perSecond, megabytesPerSecond }: Rate) =>
    print(`${name.padEnd(54)}${perSecond.toFixed(0).padStart(10)}  events/s, ${megabytesPerSecond.toFixed(0)} MB/s`)
  rate('100,000 events, streamed', replay.stream)
  rate('100,000 events, listed', replay.list)
  rate('the same without llm.generation, streamed', replay.streamWithoutCalls)
  const ratio = service.perSecond / floor.perSecond
  return [
    goal(service.residentBytes <= 25_000, 'a stream takes at most 25 KB of resident memory'),
    goal(service.clientMs.p99 <= 20, 'append to client takes at most 20 ms at 1,000 events/s, p99'),
    goal(service.perSecond >= 10_000, 'at least 10,000 events are delivered a second'),
    goal(ratio >= 0.5, `and at least half of what the floor delivers: ${ratio.toFixed(2)}`),
    goal(replay.stream.perSecond >= 20_000, 'at least 20,000 events are replayed a second'),
  ].every(Boolean)
}
