import { createRequire } from 'node:module'

type ProtoType = { fromObject(value: object): object }
type ProtoJson = { toJson(type: ProtoType, message: object): unknown; fromJson(type: ProtoType, json: unknown): object }

/**
 * Temporal's own `historyToJSON` and `historyFromJSON` throw "type must be a Type" when npm has installed protobufjs
 * more than once, as here. They use @temporalio/common's copy, but the types come from @temporalio/proto's copy.
 */
const requireHere = createRequire(import.meta.url)
const requireInCommon = createRequire(requireHere.resolve('@temporalio/common'))
const requireInProto = createRequire(requireInCommon.resolve('@temporalio/proto'))
const { toJson, fromJson }: ProtoJson = requireInProto('protobufjs/ext/protojson')
const HISTORY: ProtoType = requireInCommon('@temporalio/proto').lookupType('temporal.api.history.v1.History')

/** Converts a history to Temporal's proto JSON, without data specific to the machine that recorded it. */
export function toHistoryFile(history: object): string {
  const text = JSON.stringify(neutralise(toJson(HISTORY, HISTORY.fromObject(history))), null, 2)
  // Lists of numbers are put on one line, as this repository's formatter requires.
  return `${text.replace(/\[\s+([\d,\s]+?)\s+\]/g, (_, numbers: string) => `[${numbers.replace(/\s+/g, ' ')}]`)}\n`
}

export const fromHistoryFile = (text: string): object => fromJson(HISTORY, JSON.parse(text))

const NEUTRAL: Record<string, string> = { identity: 'worker', stackTrace: '', requestId: 'request' }
const QUEUES: Record<string, string> = {
  TASK_QUEUE_KIND_NORMAL: 'agent-sessions',
  TASK_QUEUE_KIND_STICKY: 'agent-sessions-sticky',
}

/**
 * Replaces values that identify the recording machine: process identities, stack traces and task queue names. A replay
 * reads none of them.
 */
function neutralise(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(neutralise)
  if (typeof value !== 'object' || value === null) return value
  const neutral = Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, NEUTRAL[key] ?? neutralise(inner)]),
  )
  const queue = typeof neutral.kind === 'string' ? QUEUES[neutral.kind] : undefined
  if (queue !== undefined) neutral.name = queue
  if (typeof neutral.normalName === 'string') neutral.normalName = QUEUES.TASK_QUEUE_KIND_NORMAL
  return neutral
}
