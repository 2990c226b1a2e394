import type pg from 'pg'
import { Prisma } from '../prisma/generated/client.ts'
import { tlsFailure } from './certificates.ts'

/**
 * Reason for an unavailable service. `overloaded`: no connection to Postgres became free in time, so nothing was
 * started. `away`: a connection was lost or could not be made.
 */
export type Unavailability = 'overloaded' | 'away'

/** Failure of the connection to Postgres, as opposed to an error with which Postgres answers a statement. */
export class PostgresUnavailable extends Error {
  override name = 'PostgresUnavailable'
  readonly reason: Unavailability

  constructor(reason: Unavailability, cause: Error) {
    super(cause.message || String((cause as NodeJS.ErrnoException).code), { cause })
    this.reason = reason
  }
}

/**
 * Codes of Postgres: connection exceptions (class 08), insufficient resources (53), a server that stops or starts
 * (57P01 to 57P05), and a transaction or session that was idle for too long (25P03, 25P04).
 */
const AWAY_SQLSTATE = /^(08\w{3}|53\w{3}|57P0\d|25P0[34])$/
/** Codes of Node for a network or a host that does not answer. */
const AWAY_ERRNO =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOST(UNREACH|DOWN)|ENET(UNREACH|DOWN)|ENOTFOUND|EAI_\w+)$/
/** Prisma's code for a transaction that could not be started, or continued, in time. */
const TRANSACTION_FAILED = 'P2028'

/** Recognizes errors of an external service that does not answer; undefined for all other errors. */
export function unavailability(error: unknown): Unavailability | undefined {
  if (error instanceof PostgresUnavailable) return error.reason
  if (error instanceof Prisma.PrismaClientKnownRequestError && error.code === TRANSACTION_FAILED) {
    return ofTransaction(error.meta)
  }
  if (!(error instanceof Error)) return undefined
  const code = String((error as NodeJS.ErrnoException).code)
  return AWAY_SQLSTATE.test(code) || AWAY_ERRNO.test(code) ? 'away' : undefined
}

/** Tells the cases of a failed transaction apart: `operation` was refused in a begun one, after `timeout` in ms. */
function ofTransaction({ operation, timeout }: Record<string, unknown> = {}): Unavailability | undefined {
  if (operation === undefined) return 'overloaded'
  return timeout === undefined ? undefined : 'away'
}

/**
 * Makes a pool and its clients reject with `PostgresUnavailable` when a connection fails. Only here is an error known
 * to be the driver's: it gives most failures of a connection neither a class nor a code.
 */
export function reportLostConnections(pool: pg.Pool): void {
  translateErrors(pool, 'connect')
  translateErrors(pool, 'query')
  pool.on('connect', (client) => translateErrors(client, 'query'))
}

/** Translates the errors of a method's promises. Only the pool itself calls with a callback. */
function translateErrors<Method extends string>(target: Record<Method, unknown>, method: Method): void {
  const call = (target[method] as (...args: unknown[]) => unknown).bind(target)
  const translated = (...args: unknown[]) => {
    const result = call(...args)
    return result instanceof Promise ? result.catch(throwTranslated) : result
  }
  Object.assign(target, { [method]: translated })
}

function throwTranslated(error: unknown): never {
  const reason = unavailability(error) ?? (tlsFailure(error) === undefined ? ofDriver(error) : 'away')
  throw reason === undefined || error instanceof PostgresUnavailable
    ? error
    : new PostgresUnavailable(reason, error as Error)
}

/** Errors of a wrong setting: a password that is missing or wrong, or encryption that the server does not have. */
const MISCONFIGURED = /^(SASL|The server does not support SSL)/
/** Error of the pool when no connection becomes free in time. */
const NONE_FREE = 'timeout exceeded when trying to connect'

/**
 * Classifies an error of the driver without a code. Its subclasses are errors of Postgres and mistakes of the caller;
 * a plain one means that the connection is of no use, unless it comes from a wrong setting.
 */
function ofDriver(error: unknown): Unavailability | undefined {
  if (!(error instanceof Error) || Object.getPrototypeOf(error) !== Error.prototype) return undefined
  if ('code' in error || MISCONFIGURED.test(error.message)) return undefined
  return error.message === NONE_FREE ? 'overloaded' : 'away'
}
