import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePorts, startServices } from '../dev/services/index.ts'
import type { Ground } from './site.ts'

type Bench = (ground: Ground & { ports: [number, number]; args: string[] }) => Promise<boolean>

/** Benchmarks by the subject that `npm run bench -- <subject>` names. Each resolves with whether its goals were met. */
const BENCHES: Record<string, Bench> = {
  turns: async (ground) => (await import('./turns.ts')).benchTurns(ground),
  apart: async (ground) => (await import('./turns.ts')).benchApart(ground),
  streams: async (ground) => (await import('./streams.ts')).benchStreams(ground, ground.args),
  peers: async (ground) => (await import('./peers.ts')).benchPeers(ground, ground.args),
  hours: async (ground) => (await import('./hours.ts')).benchHours(ground),
  growth: async (ground) => (await import('./growth.ts')).benchGrowth(ground),
  capacity: async (ground) => (await import('./capacity.ts')).benchCapacity(ground),
  recovery: async ({ services, ports }) => (await import('./recovery.ts')).benchRecovery(services, ports[0]),
  many: async (ground) => (await import('./many.ts')).benchMany(ground, ground.args),
  sse: async ({ services, ports }) => (await import('./sse.ts')).benchSse(services, ports[0]),
  lists: async ({ services, ports }) => (await import('./lists.ts')).benchLists(services, ports),
  runs: async (ground) => (await import('./runs.ts')).benchRuns(ground),
  auth: async ({ services, ports }) => (await import('./auth.ts')).benchAuth(services, ports),
  append: async ({ services }) => (await import('./append.ts')).benchAppend(services),
  hostile: async ({ services, ports }) => (await import('./hostile.ts')).benchHostile(services, ports[0]),
  faces: async (ground) => (await import('./faces.ts')).benchFaces(ground),
  images: async ({ services, ports }) => (await import('./images.ts')).benchImages(services, ports[0]),
  files: async ({ services, ports }) => {
    const stored = await (await import('./files.ts')).benchFiles(services, ports[0])
    return (await (await import('./files-grep.ts')).benchGrep(services, ports[1])) && stored
  },
  forks: async ({ services, ports }) => (await import('./forks.ts')).benchForks(services, ports[0]),
  databases: async ({ services }) => (await import('./databases.ts')).benchDatabases(services),
  schedules: async ({ services, ports }) => (await import('./schedules.ts')).benchSchedules(services, ports[0]),
  console: async ({ services, ports }) => (await import('./console.ts')).benchConsole(services, ports),
  fairness: async ({ services, ports, args }) =>
    (await import('./fairness.ts')).benchFairness(services, ports[0], args),
  attacks: async ({ services, ports, args }) => (await import('./attacks.ts')).benchAttacks(services, ports[0], args),
}

const [subject = 'turns', ...args] = process.argv.slice(2)
const bench = BENCHES[subject]
if (bench === undefined) throw new Error(`There is no benchmark ${subject}, only ${Object.keys(BENCHES).join(', ')}.`)
const dataDir = await mkdtemp(path.join(tmpdir(), 'agent-sessions-bench-'))
const [postgres = 0, redis = 0, temporal = 0, temporalUi = 0, port = 0, otherPort = 0] = await freePorts(6)
const services = await startServices({
  dataDir,
  ports: { postgres, redis, temporal, temporalUi },
  env: process.env,
  log: () => {},
})
try {
  process.exitCode = (await bench({ services, dataDir, ports: [port, otherPort], args })) ? 0 : 1
} finally {
  await services.stop()
  await rm(dataDir, { recursive: true, force: true })
}
