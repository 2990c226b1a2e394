import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Result, runLanes } from './statistics.ts'
import { createTurnClient } from './turn-client.ts'

const ROUNDS: [count: number, inFlight: number][] = [
  [200, 1],
  [600, 16],
  [1000, 64],
]
const WARM_UP = 150

/**
 * Times turns of the service (llmsim-default, POST to first delta and to session.idled) beside bare workflows on
 * the same Temporal, in turn, so that both see the same machine. Prints both and the goals.
 */
export async function benchTurns(baseUrl: string, temporalAddress: string): Promise<boolean> {
  const floor = await startFloor(temporalAddress)
  const client = createTurnClient(baseUrl)
  try {
    await runLanes(WARM_UP, 16, client.turn)
    await floor.run(WARM_UP, 16)
    const rows: { inFlight: number; service: Result; bare: Result }[] = []
    for (const [count, inFlight] of ROUNDS) {
      const bare = await floor.run(count, inFlight)
      rows.push({ inFlight, bare, service: await runLanes(count, inFlight, client.turn) })
    }
    return report(rows)
  } finally {
    client.close()
    floor.stop()
  }
}

async function startFloor(address: string) {
  const child = fork(fileURLToPath(new URL('./floor.ts', import.meta.url)), [address])
  await nextMessage(child)
  return {
    run: async (count: number, inFlight: number) => {
      child.send([count, inFlight])
      return (await nextMessage(child)) as Result
    },
    stop: () => child.send('stop'),
  }
}

const nextMessage = (child: ChildProcess): Promise<unknown> =>
  new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`the floor ended with code ${code}`)))
  })

function report(rows: { inFlight: number; service: Result; bare: Result }[]): boolean {
  const ms = (value: number) => value.toFixed(1).padStart(8)
  const line = (name: string, r: Result) =>
    `${name.padEnd(24)}${ms(r.firstP50)}${ms(r.firstP99)}${ms(r.wholeP50)}${ms(r.wholeP99)}${ms(r.perSecond)}`
  const out = (text: string) => process.stdout.write(`${text}\n`)
  out(`${'in flight'.padEnd(24)}   first     p99   whole     p99 turns/s   (p50 in ms)`)
  for (const { inFlight, bare, service } of rows) {
    out(line(`${inFlight} bare workflow`, bare))
    out(line(`${inFlight} service`, service))
  }
  const goals = rows.flatMap(({ inFlight, bare, service }) => {
    const ratio = service.perSecond / bare.perSecond
    const first = service.firstP50 - bare.firstP50
    return [
      ...(inFlight === 1
        ? [
            goal(first <= 15, `first delta at most 15 ms above the bare workflow: ${first.toFixed(1)} ms`),
            goal(service.firstP50 <= 50, `first delta at most 50 ms: ${service.firstP50.toFixed(1)} ms`),
          ]
        : [
            goal(
              ratio >= 0.8,
              `turns/s with ${inFlight} in flight at least 0.8 of the bare workflow: ${ratio.toFixed(2)}`,
            ),
          ]),
    ]
  })
  for (const { text } of goals) out(text)
  return goals.every(({ met }) => met)
}

const goal = (met: boolean, text: string) => ({ met, text: `${met ? 'met   ' : 'missed'}  ${text}` })
