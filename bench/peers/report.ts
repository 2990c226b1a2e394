import { sumOf } from '../cpu.ts'
import type { Load, Measured } from '../load.ts'
import { goal, print } from '../report.ts'
import { ALONE, BURST, type Results, ratioOf, SIXTEEN, SIXTY_FOUR } from '../rounds.ts'
import { median, percentile } from '../statistics.ts'
import { HEADER, row, type Measured as Streamed } from '../streams.ts'
import { atLeast, atMost, printTable, reportLosses, SERVICE } from '../turns-report.ts'

type Column<Value> = [name: string, of: Value]

const WIDTH = 15

/** Prints the service's numbers as ratios to each peer's. */
function printRatios<Value>(names: string[], columns: Column<Value>[], of: (name: string, value: Value) => number) {
  print(`${'service / peer'.padEnd(WIDTH)}${columns.map(([name]) => name.padStart(WIDTH)).join('')}`)
  for (const name of names) {
    const ratios = columns.map(([, value]) => of(name, value).toFixed(2).padStart(WIDTH))
    print(`${name.padEnd(WIDTH)}${ratios.join('')}`)
  }
  print('')
}

const cpu = (one: Measured) => sumOf(one.cpu)
const first = (one: Measured) => one.firstP50
const rate = (one: Measured) => one.perSecond
const last = (one: Measured) => one.wholeP95

const TURNS: Column<[Load, (one: Measured) => number]>[] = [
  ['first, 1', [ALONE, first]],
  ['first, 16', [SIXTEEN, first]],
  ['first, 64', [SIXTY_FOUR, first]],
  ['turns/s, 16', [SIXTEEN, rate]],
  ['turns/s, 64', [SIXTY_FOUR, rate]],
  ['CPU, 1', [ALONE, cpu]],
  ['CPU, 16', [SIXTEEN, cpu]],
  ['burst p95', [BURST, last]],
]

/** Prints tables and goals of turns; returns true when all goals of the service are met. */
export function reportTurns(results: Results, peers: string[], loads: Load[]): boolean {
  printTable(results, [...peers, SERVICE], loads)
  const beside = (peer: string, [load, value]: [Load, (one: Measured) => number]) =>
    ratioOf(results, [SERVICE, load, value], [peer, load, value])
  printRatios(peers, TURNS, beside)
  const rates = (peer: string) => [SIXTEEN, SIXTY_FOUR].map((load) => beside(peer, [load, rate]))
  for (const peer of peers) reportText(results, peer, loads)
  return peers
    .flatMap((peer) => {
      if (peer === 'agno') {
        return [
          atMost(1, 'first token alone, of Agno', [beside(peer, [ALONE, first])]),
          atLeast(2, 'turns/s at 16 and 64, of Agno', rates(peer)),
        ]
      }
      if (peer === 'langgraph') return [atLeast(2, 'turns/s at 16 and 64, of LangGraph', rates(peer))]
      if (peer === 'dbos') return [atMost(1.15, 'p95 of the turn in the burst, of DBOS', [beside(peer, [BURST, last])])]
      return []
    })
    .concat(reportLosses(results, SERVICE))
    .every(Boolean)
}

/** Prints whether a peer's streams had all text once and in order, and how often it asked the model for a turn. */
function reportText(results: Results, peer: string, loads: Load[]): void {
  const rounds = loads.flatMap((load) => results.of(peer, load))
  const lost = rounds.flatMap((measured) => measured.lost)
  const calls = Math.max(...rounds.map((measured) => measured.calls))
  for (const sentence of lost.slice(0, 2)) print(sentence.slice(0, 200))
  print(
    `        ${peer}: ${lost.length} turns differ in their streamed text; the model asked up to ${calls} times a turn`,
  )
}

const STREAMS: Column<(one: Streamed) => number>[] = [
  ['first p50', (one) => percentile(one.firstMs, 0.5)],
  ['first p95', (one) => percentile(one.firstMs, 0.95)],
  ['relay p50', (one) => one.relay.p50],
  ['relay p99', (one) => one.relay.p99],
  ['CPU', (one) => sumOf(one.cpu)],
]

/** Prints tables and goals of streams; `results` has the rounds by `<count> <name>`. */
export function reportStreams(results: Map<string, Streamed[]>, peers: string[], counts: number[]): boolean {
  const of = (count: number, name: string) => results.get(`${count} ${name}`) ?? []
  const beside = (count: number, peer: string, value: (one: Streamed) => number) =>
    median(of(count, SERVICE).map((one, round) => value(one) / (of(count, peer).map(value)[round] ?? Number.NaN)))
  print(`\n${HEADER}`)
  for (const count of counts) {
    for (const name of [...peers, SERVICE]) print(row(`${count} ${name}`, of(count, name)))
  }
  for (const count of counts) {
    print(`\n${count} streams`)
    printRatios(peers, STREAMS, (peer, value) => beside(count, peer, value))
  }
  const wrong = [...results].flatMap(([key, rounds]) =>
    rounds.flatMap((one) => one.wrong.map((sentence) => `${key}: ${sentence}`)),
  )
  for (const sentence of wrong.slice(0, 5)) print(sentence)
  const isWhole = goal(wrong.length === 0, `all tokens once and in order (${wrong.length} streams differ)`)
  if (!peers.includes('dbos')) return isWhole
  const relay = beside(200, 'dbos', (one) => one.relay.p99)
  return atMost(2, 'relay p99 at 200 streams, of DBOS + Redis', [relay]) && isWhole
}
