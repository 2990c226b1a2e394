/** Measured costs. CPU in ms by part; `turn` is one turn of instant tokens, `second` one second of a stream of 20 tokens. */
export type Costs = {
  turn: { cpu: Parts; walBytes: number; storedBytes: number; commits: number; redisBytes: number; actions: number }
  second: { cpu: Parts; walBytes: number; commits: number; redisBytes: number }
}
export type Parts = { service: number; Temporal: number; Postgres: number; Redis: number }

/** Turns a second, each streaming for some seconds. */
export type Demand = { turnsPerSecond: number; secondsOfTurn: number }

/** What a part of the installation can do, in the unit of its need. */
export type Limit = { part: string; limit: number; unit: string; why: string }

/** Needs of a demand, in the units of `CELL`, and what they mean for one installation. */
export type Need = {
  cores: Parts
  replicas: number
  storedGbPerDay: number
  /** Each limited part with its need, and the share of one cell that it takes. */
  parts: (Limit & { need: number; share: number })[]
  /** The part that ends first, and the number of cells that carry all of it. */
  first: string
  cells: number
}

/** Cores that a replica uses before its event loop makes streams late: the loop itself, and the threads beside it. */
export const CORES_OF_REPLICA = 1
/** Connections to Postgres that a replica keeps open under load. */
const CONNECTIONS_OF_REPLICA = 10
const DAY_SECS = 86_400

/** One cell: a Postgres, a Redis, a namespace of Temporal, and replicas. Assumptions, which an operator replaces by his own. */
export const CELL: Limit[] = [
  { part: 'Postgres CPU', limit: 32, unit: 'cores', why: 'one large primary' },
  { part: 'Postgres WAL', limit: 100, unit: 'MB/s', why: 'a network disk with room for checkpoints' },
  { part: 'Postgres commits', limit: 20_000, unit: 'a second', why: 'group commit on a disk with 0.5 ms' },
  { part: 'Postgres connections', limit: 1000, unit: '', why: 'direct ones; a pooler in front allows more' },
  { part: 'Redis CPU', limit: 0.8, unit: 'cores', why: 'it runs commands on one core' },
  {
    part: 'Temporal actions',
    limit: 2000,
    unit: 'a second',
    why: 'a self-hosted cluster of 512 shards; a cloud namespace starts lower',
  },
]

/** Returns what a demand needs. */
export function needOf({ turn, second }: Costs, { turnsPerSecond, secondsOfTurn }: Demand): Need {
  const of = (each: number, streamed = 0) => turnsPerSecond * (each + secondsOfTurn * streamed)
  const coresOf = (part: keyof Parts) => of(turn.cpu[part], second.cpu[part]) / 1000
  const cores = {
    service: coresOf('service'),
    Temporal: coresOf('Temporal'),
    Postgres: coresOf('Postgres'),
    Redis: coresOf('Redis'),
  }
  const replicas = Math.max(1, Math.ceil(cores.service / CORES_OF_REPLICA))
  const needs: Record<string, number> = {
    'Postgres CPU': cores.Postgres,
    'Postgres WAL': of(turn.walBytes, second.walBytes) / 1e6,
    'Postgres commits': of(turn.commits, second.commits),
    'Postgres connections': replicas * CONNECTIONS_OF_REPLICA,
    'Redis CPU': cores.Redis,
    'Temporal actions': of(turn.actions),
  }
  const parts = CELL.map((limit) => {
    const need = needs[limit.part] ?? Number.NaN
    return { ...limit, need, share: need / limit.limit }
  })
  const first = parts.reduce((most, part) => (part.share > most.share ? part : most))
  return {
    cores,
    replicas,
    storedGbPerDay: (of(turn.storedBytes) * DAY_SECS) / 1e9,
    parts,
    first: first.part,
    cells: Math.max(1, Math.ceil(first.share)),
  }
}

/** Returns how many turns a second a machine carries on which everything runs, beside `otherMs` of CPU a turn. */
export const turnsPerSecond = (cores: number, cpuOfTurn: number, otherMs: number): number =>
  (cores * 1000) / (cpuOfTurn + otherMs)
