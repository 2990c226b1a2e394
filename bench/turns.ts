import { startChild } from './child.ts'
import { goal, print } from './report.ts'
import { type Result, runLanes } from './statistics.ts'
import { createTurnClient } from './turn-client.ts'

const ROUNDS: [count: number, inFlight: number][] = [
  [200, 1],
  [600, 16],
  [1000, 64],
]
const WARM_UP = 150

/**
 * Times turns of the service (llmsim-default, POST to first delta and to session.idled) and bare workflows on the same
 * Temporal. Alternates between the two, so that both see the same machine. Prints both and the goals.
 */
export async function benchTurns(baseUrl: string, temporalAddress: string): Promise<boolean> {
  const floor = await startChild('./floor.ts', { args: [temporalAddress] })
  const client = createTurnClient(baseUrl)
  try {
    await runLanes(WARM_UP, 16, client.turn)
    await floor.ask([WARM_UP, 16])
    const rows: { inFlight: number; service: Result; bare: Result }[] = []
    for (const [count, inFlight] of ROUNDS) {
      const bare = await floor.ask<Result>([count, inFlight])
      rows.push({ inFlight, bare, service: await runLanes(count, inFlight, client.turn) })
    }
    return report(rows)
  } finally {
    client.close()
    await floor.stop()
  }
}

function report(rows: { inFlight: number; service: Result; bare: Result }[]): boolean {
  const ms = (value: number) => value.toFixed(1).padStart(8)
  const line = (name: string, r: Result) =>
    `${name.padEnd(24)}${ms(r.firstP50)}${ms(r.firstP99)}${ms(r.wholeP50)}${ms(r.wholeP99)}${ms(r.perSecond)}`
  print(`${'in flight'.padEnd(24)}   first     p99   whole     p99 turns/s   (p50 in ms)`)
  for (const { inFlight, bare, service } of rows) {
    print(line(`${inFlight} bare workflow`, bare))
    print(line(`${inFlight} service`, service))
  }
  return rows
    .flatMap(({ inFlight, bare, service }) => {
      const ratio = service.perSecond / bare.perSecond
      const first = service.firstP50 - bare.firstP50
      return inFlight === 1
        ? [
            goal(first <= 15, `first delta at most 15 ms above the bare workflow: ${first.toFixed(1)} ms`),
            goal(service.firstP50 <= 50, `first delta at most 50 ms: ${service.firstP50.toFixed(1)} ms`),
          ]
        : [
            goal(
              ratio >= 0.8,
              `turns/s with ${inFlight} in flight at least 0.8 of the bare workflow: ${ratio.toFixed(2)}`,
            ),
          ]
    })
    .every(Boolean)
}
