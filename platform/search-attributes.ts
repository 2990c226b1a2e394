import type { Connection } from '@temporalio/client'
import { defineSearchAttributeKey, TypedSearchAttributes } from '@temporalio/common'
import type { Logger } from 'pino'
import { toId } from '../contract/ids.ts'
import type { StartedTurn } from '../domain/turns/turn-workflows.ts'

/** Search attributes by which turns are found in Temporal. */
export type TurnAttributes = {
  /**
   * Returns the attributes that Temporal is known to accept by now, without waiting for more; undefined when there are
   * none.
   */
  of(turn: StartedTurn): TypedSearchAttributes | undefined
  /**
   * Notes that Temporal refused a start because of the attributes. None are used until they have been looked up again.
   */
  refused(error: Error): void
}

const NAMES = ['SessionId', 'AgentId', 'OrganizationId'] as const
type Name = (typeof NAMES)[number]

/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2
const TIMEOUT_MS = 5000
const AGAIN_MS = 10_000

/**
 * Registers the attributes at once, in the background. Where that is not permitted, an administrator can do it. Until
 * they exist, turns start without them, and every ten seconds at most a start triggers another look-up. `track`
 * receives each call on the connection.
 */
export function registerTurnAttributes(
  connection: Connection,
  namespace: string,
  log: Logger,
  track: <T>(asking: Promise<T>) => Promise<T>,
): TurnAttributes {
  let usable: readonly Name[] = []
  let nextTryAt = 0
  let hasLogged = false

  const tellOnce = (err: string) => {
    if (!hasLogged) log.warn({ err }, 'turns start without search attributes until Temporal has them')
    hasLogged = true
  }
  const tryRegister = () => {
    if (Date.now() < nextTryAt) return
    nextTryAt = Number.POSITIVE_INFINITY
    const use = (names: Name[]) => {
      usable = names
    }
    track(register(connection, namespace, use)).catch((error: Error) => {
      nextTryAt = Date.now() + AGAIN_MS
      tellOnce(error.message)
    })
  }
  tryRegister()

  return {
    of: (turn) => {
      tryRegister()
      return usable.length === 0 ? undefined : attributesOf(turn, usable)
    },
    refused: (error) => {
      usable = []
      nextTryAt = Date.now() + AGAIN_MS
      tellOnce(error.message)
    },
  }
}

async function register(connection: Connection, namespace: string, use: (names: Name[]) => void): Promise<void> {
  const { operatorService } = connection
  const deadline = Date.now() + TIMEOUT_MS
  const { customAttributes } = await connection.withDeadline(deadline, () =>
    operatorService.listSearchAttributes({ namespace }),
  )
  // A deployment may use one of the names for an attribute of its own.
  use(NAMES.filter((name) => customAttributes[name] === KEYWORD))
  const missing = NAMES.filter((name) => customAttributes[name] === undefined)
  if (missing.length === 0) return
  const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]))
  await connection.withDeadline(deadline, () => operatorService.addSearchAttributes({ namespace, searchAttributes }))
  use(NAMES.filter((name) => (customAttributes[name] ?? KEYWORD) === KEYWORD))
}

function attributesOf(turn: StartedTurn, names: readonly Name[]): TypedSearchAttributes {
  const values: Record<Name, string | null> = {
    SessionId: toId('session', turn.sessionId),
    AgentId: turn.agentId && toId('agent', turn.agentId),
    OrganizationId: toId('org', turn.organizationId),
  }
  return new TypedSearchAttributes(
    names.flatMap((name) => {
      const value = values[name]
      return value === null ? [] : [{ key: defineSearchAttributeKey(name, 'KEYWORD'), value }]
    }),
  )
}
