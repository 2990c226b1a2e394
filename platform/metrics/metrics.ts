import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { TurnErrorCode } from '../../contract/errors.ts'
import type { AttemptReason, Gauge as GaugeName, Metrics } from '../../domain/kit/metrics.ts'

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800]
const ATTEMPT_REASONS: AttemptReason[] = ['first', 'retry', 'taken_over']
const PREFIX = 'agent_sessions_'
/** Time for the metrics of Temporal's library, which has a server of its own on this machine. */
const TEMPORAL_TIMEOUT_MS = 1000
/** Name of a process's own task queue, which has the number of the process. */
const OWN_QUEUE = /(task_queue="[^"/]*)\/[^"]*"/g

export type ProcessMetrics = Metrics & {
  /** Returns all metrics in Prometheus's text format. */
  read(): Promise<string>
  /** Takes in the metrics of Temporal's library from its own address. */
  include(address: string): void
}

/**
 * Measures this process with prom-client. Labels have closed sets of values: kinds of providers, names of the service's
 * own tools (`toolNames`; others are `other`), outcomes and codes.
 */
export function createMetrics(toolNames: ReadonlySet<string>): ProcessMetrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter({ name: PREFIX + name, help, labelNames, registers })
  const seconds = <Label extends string>(name: string, help: string, labelNames: Label[] = []) =>
    new Histogram({ name: PREFIX + name, help, labelNames, buckets: SECONDS, registers })

  const turns = counter('turns_total', 'Turns that ended, and the code of failures.', ['end', 'code'])
  const turnSeconds = seconds('turn_seconds', 'From the message to the end of its turn.', ['end'])
  const queueSeconds = seconds('turn_queue_seconds', 'From the message to the start of its turn.')
  const attempts = counter('attempts_total', 'Attempts at steps: the first, after a failed call, after a death.', [
    'reason',
  ])
  const calls = counter('model_calls_total', 'Model calls that ended; retry: failed, and made again.', [
    'provider',
    'outcome',
  ])
  const callSeconds = seconds('model_call_seconds', 'From the request to the end of the answer.', ['provider'])
  const firstToken = seconds('first_token_seconds', "From the request to the first part of the model's answer.", [
    'provider',
  ])
  const tokens = counter('model_tokens_total', 'Tokens as providers count them.', ['provider', 'kind'])
  const cost = counter('model_cost_usd_total', 'Cost of model calls with a known price, in US dollars.', ['provider'])
  const tools = counter('tool_calls_total', 'Calls of tools that ended.', ['tool', 'outcome'])
  const toolSeconds = seconds('tool_call_seconds', 'Time of calls that the service ran.', ['tool'])
  const events = counter('events_total', 'Events that were recorded.')
  const sent = counter('events_sent_total', 'Events passed on to streams.', ['how'])
  const delivery = seconds('delivery_seconds', 'From the record of an event to its live stream.')
  const relay = seconds('relay_seconds', 'From the publication of an entry to its arrival from Redis.')
  const sweeps = counter('sweeps_total', 'Runs of the periodic sweeps.', ['sweep', 'outcome'])
  const found = counter('sweep_found_total', 'Items that sweeps found and took care of.', ['sweep'])
  const gauges: Record<GaugeName, { name: string; help: string }> = {
    streams: { name: 'streams', help: 'Open event streams.' },
    postgres_total: { name: 'postgres_connections', help: 'Open connections to Postgres.' },
    postgres_idle: { name: 'postgres_connections_idle', help: 'Unused ones of these.' },
    postgres_waiting: { name: 'postgres_waiting', help: 'Requests that wait for a connection.' },
  }
  // A rate needs the value before the first one.
  for (const code of TurnErrorCode.options) turns.inc({ end: 'failed', code }, 0)
  for (const end of ['completed', 'cancelled']) turns.inc({ end, code: '' }, 0)
  for (const reason of ATTEMPT_REASONS) attempts.inc({ reason }, 0)
  const toolOf = (name: unknown) => (typeof name === 'string' && toolNames.has(name) ? name : 'other')

  const observers: Record<string, (data: Data, at: number) => void> = {
    'turn.started': ({ turn_id }, at) => queueSeconds.observe(secondsSince(turn_id, at)),
    'turn.completed': (data, at) => endTurn('completed', data, at),
    'turn.failed': (data, at) => endTurn('failed', data, at),
    'turn.cancelled': (data, at) => endTurn('cancelled', data, at),
    'llm.generation': ({ metadata = {} }) => countCall(metadata),
    'tool.completed': ({ tool_name, status, duration_ms }) => {
      const tool = toolOf(tool_name)
      tools.inc({ tool, outcome: String(status) })
      if (typeof duration_ms === 'number') toolSeconds.observe({ tool }, duration_ms / 1000)
    },
  }
  const endTurn = (end: string, { turn_id, error_code }: Data, at: number) => {
    turns.inc({ end, code: String(error_code ?? '') })
    turnSeconds.observe({ end }, secondsSince(turn_id, at))
  }
  const countCall = (metadata: CallMetadata) => {
    const provider = metadata.provider ?? 'unknown'
    calls.inc({ provider, outcome: metadata.success ? 'success' : 'error' })
    callSeconds.observe({ provider }, (metadata.duration_ms ?? 0) / 1000)
    if (metadata.time_to_first_token_ms !== undefined)
      firstToken.observe({ provider }, metadata.time_to_first_token_ms / 1000)
    for (const [name, count] of Object.entries(metadata.usage ?? {}))
      if (count) tokens.inc({ provider, kind: name.replace(/_tokens$/, '') }, count)
    if (metadata.cost_usd) cost.inc({ provider }, Number(metadata.cost_usd))
  }

  let temporal: string | undefined
  return {
    recorded: (recorded) => {
      events.inc(recorded.length)
      for (const event of recorded) observers[event.type]?.(event.data as Data, Date.parse(event.ts))
    },
    attempted: (reason) => attempts.inc({ reason }),
    retried: (provider) => calls.inc({ provider, outcome: 'retry' }),
    sent: (passed, how) => {
      sent.inc({ how }, passed.length)
      if (how === 'live') delivery.observe(secondsSince(passed[0]?.id, Date.now()))
    },
    relayed: (lagMs) => relay.observe(Math.max(0, lagMs) / 1000),
    swept: (sweep, count) => {
      sweeps.inc({ sweep, outcome: 'done' })
      sweeps.inc({ sweep, outcome: 'failed' }, 0)
      found.inc({ sweep }, count)
    },
    sweepFailed: (sweep) => sweeps.inc({ sweep, outcome: 'failed' }),
    watch: (gauge, read) => {
      const { name, help } = gauges[gauge]
      new Gauge({
        name: PREFIX + name,
        help,
        registers,
        collect() {
          this.set(read())
        },
      })
    },
    include: (address) => {
      temporal = address
    },
    read: async () => [await registry.metrics(), temporal && (await readTemporal(temporal))].join('\n'),
  }
}

/** Fields of the events above. */
type Data = {
  turn_id?: string
  error_code?: string | null
  tool_name?: string
  status?: string
  duration_ms?: number | null
  metadata?: CallMetadata
}
type CallMetadata = {
  provider?: string
  success?: boolean
  duration_ms?: number
  time_to_first_token_ms?: number
  usage?: Record<string, number>
  cost_usd?: string | null
}

/** Returns the seconds from the making of an id on the wire to a time in ms. A UUIDv7 begins with its time. */
function secondsSince(id: string | undefined, at: number): number {
  const since = Number.parseInt(id?.split('_', 2)[1]?.slice(0, 12) ?? '', 16)
  return Number.isNaN(since) ? 0 : Math.max(0, at - since) / 1000
}

const readTemporal = (address: string): Promise<string> =>
  fetch(`http://${address}/metrics`, { signal: AbortSignal.timeout(TEMPORAL_TIMEOUT_MS) })
    .then((answer) => answer.text())
    .then((text) => text.replace(OWN_QUEUE, '$1/process"'))
    .catch(() => '')
