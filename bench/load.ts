import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from './child.ts'
import { type Cpu, cpuPerTurn, type Processes, readCpu } from './cpu.ts'
import type { FloorJob } from './floor.ts'
import { findLostText } from './lost-text.ts'
import { type Pace, textOf } from './provider.ts'
import type { Site } from './site.ts'
import { runLanes, type Times } from './statistics.ts'
import { openClient } from './turn-client.ts'

/** Turns of one kind, `inFlight` at a time. */
export type Load = Pace & { name: string; count: number; inFlight: number }

/** Times, CPU of a turn in ms by role, calls of the provider for a turn, and a sentence for each lost text. */
export type Measured = Times & { cpu: Cpu; calls: number; lost: string[] }

/** Something that runs turns. */
export type Subject = { name: string; measure(load: Load): Promise<Measured> }

/** Number of turns that a session has, about, so that its history does not cost more than a turn does. */
export const TURNS_PER_SESSION = 10
/** Time in which workflows end whose turn has ended, so that their CPU counts. */
const SETTLE_MS = 500

/** The service: one open stream for each session, then POST. */
export const siteSubject = (name: string, { baseUrl, baseUrls, processes }: Site, provider: Child): Subject => ({
  name,
  measure: async (load) => {
    const { count, inFlight, tokens, pauseMs } = load
    const pace: Pace = { tokens, pauseMs }
    const client = await openClient(baseUrls, inFlight, Math.ceil(count / inFlight / TURNS_PER_SESSION))
    try {
      await provider.ask(pace)
      const measured = await withCpu(processes, count, () => runLanes(count, inFlight, client.turn))
      const calls = (await provider.ask<number>(pace)) / count
      const lost = await findLostText(baseUrl, client.sessions, textOf(tokens))
      return { ...measured, calls, lost }
    } finally {
      client.close()
    }
  },
})

/** Bare workflows, in a child process on a Temporal. */
export const floorSubject = (
  name: string,
  floor: Child,
  workflow: FloorJob['workflow'],
  temporalPid: number[],
): Subject => ({
  name,
  measure: async ({ count, inFlight }) => {
    const processes = { service: [floor.pid], Temporal: temporalPid }
    const job: FloorJob = { workflow, count, inFlight }
    return { ...(await withCpu(processes, count, () => floor.ask<Times>(job))), calls: 1, lost: [] }
  },
})

/** Measures work with its CPU by role, for a turn. */
export async function withCpu(
  processes: Processes,
  turns: number,
  work: () => Promise<Times>,
): Promise<Times & { cpu: Cpu }> {
  const before = readCpu(processes)
  const times = await work()
  await sleep(SETTLE_MS)
  return { ...times, cpu: cpuPerTurn(before, readCpu(processes), turns) }
}
