import { type Connection, isGrpcServiceError, ServiceError } from '@temporalio/client'
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common'
import type { Logger } from 'pino'

const NAMES = ['SessionId', 'AgentId', 'OrganizationId', 'ScheduleId'] as const
type Name = (typeof NAMES)[number]

/** Values of attributes, which are ids. */
export type Labels = Partial<Record<Name, string | null>>

/** Search attributes by which workflows are found in Temporal. */
export type Attributes = {
  /** Starts a workflow with the attributes that Temporal is known to accept, and without any if it refuses them. */
  startWith<T>(labels: Labels, start: (attributes: TypedSearchAttributes | undefined) => Promise<T>): Promise<T>
}

/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2
const TIMEOUT_MS = 5000
const RETRY_PAUSE_MS = 10_000
/** A gRPC status code. */
const INVALID_ARGUMENT = 3

/**
 * Registers the attributes at once, in the background. Where that is not permitted, an administrator can do it. Until
 * they exist, workflows start without them, and every ten seconds at most a start triggers another look-up. `track`
 * receives each call on the connection.
 */
export function registerAttributes(
  connection: Connection,
  namespace: string,
  log: Logger,
  track: <T>(asking: Promise<T>) => Promise<T>,
): Attributes {
  let usable: readonly Name[] = []
  let nextTryAt = 0
  let hasLogged = false

  const warnOnce = (err: string) => {
    if (!hasLogged) log.warn({ err }, 'workflows start without search attributes; npm run setup:temporal makes them')
    hasLogged = true
  }
  const tryRegister = () => {
    if (performance.now() < nextTryAt) return
    nextTryAt = Number.POSITIVE_INFINITY
    const use = (names: Name[]) => {
      usable = names
    }
    track(register(connection, namespace, use)).catch((error: Error) => {
      nextTryAt = performance.now() + RETRY_PAUSE_MS
      warnOnce(error.message)
    })
  }
  tryRegister()

  return {
    startWith: async (labels, start) => {
      tryRegister()
      const attributes = usable.length === 0 ? undefined : attributesOf(labels, usable)
      try {
        return await start(attributes)
      } catch (error) {
        // One of Temporal's servers may not know the attributes yet, or they have been removed.
        if (attributes === undefined || !isRefused(error)) throw error
        usable = []
        nextTryAt = performance.now() + RETRY_PAUSE_MS
        warnOnce(error.message)
        return start(undefined)
      }
    },
  }
}

const isRefused = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && isGrpcServiceError(error.cause) && error.cause.code === INVALID_ARGUMENT

async function register(connection: Connection, namespace: string, use: (names: Name[]) => void): Promise<void> {
  use((await addAttributes(connection, namespace, use)).usable)
}

/**
 * Adds the attributes that the namespace lacks. `usable` are there afterwards, `taken` are there with another type, as a
 * deployment may use one of the names for an attribute of its own. `onFound` gets the earlier ones.
 */
export async function addAttributes(
  connection: Connection,
  namespace: string,
  onFound: (names: Name[]) => void = () => {},
): Promise<{ added: Name[]; usable: Name[]; taken: Name[] }> {
  const { operatorService } = connection
  const deadline = Date.now() + TIMEOUT_MS
  const { customAttributes } = await connection.withDeadline(deadline, () =>
    operatorService.listSearchAttributes({ namespace }),
  )
  const found = NAMES.filter((name) => customAttributes[name] === KEYWORD)
  onFound(found)
  const missing = NAMES.filter((name) => customAttributes[name] === undefined)
  const taken = NAMES.filter((name) => ![...found, ...missing].includes(name))
  if (missing.length === 0) return { added: [], usable: found, taken }
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]))
  await connection.withDeadline(deadline, () => operatorService.addSearchAttributes({ namespace, searchAttributes }))
  return { added: missing, usable: [...found, ...missing], taken }
}

function attributesOf(labels: Labels, names: readonly Name[]): TypedSearchAttributes {
  return new TypedSearchAttributes(
    names.flatMap((name) => {
      const value = labels[name]
      return value == null ? [] : [{ key: defineSearchAttributeKey(name, 'KEYWORD'), value }]
    }),
  )
}
