import path from 'node:path'
import { freePorts } from '../dev/services/index.ts'
import { type Child, startChild } from './child.ts'
import { floorSubject, type Subject, siteSubject } from './load.ts'
import { print } from './report.ts'
import { ALONE, BURST, runRounds, SIXTEEN, SIXTY_FOUR, STORM } from './rounds.ts'
import { type Ground, type Shape, type Site, startOwnSite, startSite, startSiteBefore } from './site.ts'
import { startTemporalBefore } from './temporal-before.ts'
import {
  BEFORE,
  FLOOR,
  FLOOR_BEFORE,
  LOCAL_FLOOR,
  printTable,
  reportGoals,
  reportGoalsBefore,
  reportShapes,
  SERVICE,
} from './turns-report.ts'

const STEADY = [ALONE, SIXTEEN, SIXTY_FOUR]
const LOADS = [...STEADY, BURST]
const WITHOUT_BEFORE = 'BENCH_BEFORE names no checkout of an earlier version, so there is no comparison with it.'

/**
 * Times turns of the service, of an earlier version of it if BENCH_BEFORE is its folder, and of bare workflows, and
 * measures the CPU that they take. Prints a table and the goals; see docs/benchmarks.md.
 */
export const benchTurns = (ground: Ground): Promise<boolean> =>
  withSites(ground, 'together', async (service, before) => {
    const onStop: (() => Promise<void>)[] = []
    const started = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
      const running = await starting
      onStop.unshift(() => running.stop())
      return running
    }
    try {
      const temporalBefore = await started(startTemporalBefore(ground.dataDir))
      const floorBefore = await started(startFloor(temporalBefore.url))
      const floor = await started(startFloor(ground.services.temporalAddress))
      const temporal = service.temporal
      const floors = [
        floorSubject(FLOOR_BEFORE, floorBefore, 'floor', [temporalBefore.pid]),
        floorSubject(FLOOR, floor, 'floor', temporal),
        floorSubject(LOCAL_FLOOR, floor, 'localFloor', temporal),
      ]
      const results = await runRounds([
        ...floors.map((subject) => ({ subject, loads: STEADY })),
        ...[before, service.subject].filter((one) => one !== undefined).map((subject) => ({ subject, loads: LOADS })),
      ])
      printTable(results, [...floors.map(({ name }) => name), BEFORE, SERVICE], LOADS)
      const isMet = reportGoals(results)
      return [isMet, before === undefined ? true : reportGoalsBefore(results)].every(Boolean)
    } finally {
      for (const stop of onStop) await stop()
    }
  })

const SHAPES: Record<string, Shape> = { [SERVICE]: 'together', 'two replicas': 'replicas', apart: 'apart' }

/**
 * Measures the same load, and a storm of 200 starts, in each shape of the service: one process, two replicas, and API and
 * worker apart. Each has services of its own.
 */
export async function benchApart({ dataDir }: Ground): Promise<boolean> {
  const [providerPort = 0] = await freePorts(1)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  const sites: Site[] = []
  try {
    const subjects: Subject[] = []
    for (const [name, shape] of Object.entries(SHAPES)) {
      const site = await startOwnSite(path.join(dataDir, shape), shape, providerPort)
      sites.push(site)
      subjects.push(siteSubject(name, site, provider))
    }
    const loads = [...LOADS, STORM]
    const results = await runRounds(subjects.map((subject) => ({ subject, loads })))
    printTable(results, Object.keys(SHAPES), loads)
    return reportShapes(results, 'two replicas')
  } finally {
    for (const site of sites) await site.stop()
    await provider.stop()
  }
}

type Own = { subject: Subject; temporal: number[] }

async function withSites(
  ground: Ground,
  shape: Shape,
  work: (service: Own, before: Subject | undefined) => Promise<boolean>,
): Promise<boolean> {
  const [providerPort = 0] = await freePorts(1)
  const provider = await startChild('./provider.ts', { args: [`${providerPort}`] })
  const site = await startSite(ground, shape, providerPort)
  const siteBefore = await startSiteBefore(ground.dataDir, shape, providerPort)
  if (siteBefore === undefined) print(WITHOUT_BEFORE)
  try {
    const own = { subject: siteSubject(SERVICE, site, provider), temporal: site.processes.Temporal ?? [] }
    return await work(own, siteBefore && siteSubject(BEFORE, siteBefore, provider))
  } finally {
    await siteBefore?.stop()
    await site.stop()
    await provider.stop()
  }
}

const startFloor = (address: string): Promise<Child> => startChild('./floor.ts', { args: [address] })
