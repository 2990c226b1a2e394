import { createHash } from 'node:crypto'
import type { TemporalToolDefinition } from '../../../contract/tools.ts'
import { canonicalJson } from '../../../lib/canonical-json.ts'
import type { TemporalTarget } from '../../../workflows/messages.ts'
import { type Tool, ToolError } from '../capabilities/capability.ts'

const DEFAULT_TIMEOUT_SECONDS = 300
const DEFAULT_SCHEDULE_TO_START_SECONDS = 60
/** Prefix of the versions of these tools, by which acts with calls of them are found (domain/turns/worker-acts.ts). */
export const TEMPORAL_VERSION = 'temporal:'

/** Returns the tool of a definition. The turn's workflow has its calls run by a worker of the organization. */
export function temporalTool(definition: TemporalToolDefinition): Tool {
  const { name, description, parameters, display_name } = definition
  const temporal = targetOf(definition)
  return {
    name,
    description,
    displayName: display_name || name,
    // Providers require both, which a JSON Schema may omit.
    parameters: { type: 'object', properties: {}, ...parameters },
    schemaOwner: 'external',
    version: versionOf(definition),
    timeoutMs: temporal.timeoutMs,
    temporal,
    mayRunAgain: false,
    run: async () => {
      throw new ToolError('The turn began on an earlier release, which cannot run this tool. Call it in a later turn.')
    },
  }
}

function targetOf(definition: TemporalToolDefinition): TemporalTarget {
  const {
    task_queue,
    activity,
    workflow = '',
    timeout_seconds,
    schedule_to_start_seconds,
    heartbeat_seconds,
  } = definition
  const { retry } = definition
  return {
    kind: activity === undefined ? 'workflow' : 'activity',
    name: activity ?? workflow,
    taskQueue: task_queue,
    timeoutMs: (timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
    scheduleToStartMs: (schedule_to_start_seconds ?? DEFAULT_SCHEDULE_TO_START_SECONDS) * 1000,
    ...(heartbeat_seconds === undefined ? {} : { heartbeatMs: heartbeat_seconds * 1000 }),
    retry: {
      maximumAttempts: retry?.maximum_attempts ?? 1,
      initialInterval: (retry?.initial_interval_seconds ?? 1) * 1000,
      backoffCoefficient: retry?.backoff_coefficient ?? 2,
      maximumInterval: Math.max(retry?.maximum_interval_seconds ?? 60, retry?.initial_interval_seconds ?? 1) * 1000,
    },
  }
}

/** Returns a version that changes with the definition: an approval is for this tool, and so is a planned call. */
const versionOf = (definition: TemporalToolDefinition): string =>
  TEMPORAL_VERSION + createHash('sha256').update(canonicalJson(definition)).digest('hex').slice(0, 32)
