/**
 * Reason for an unavailable service. `overloaded`: no connection to Postgres became free in time, so nothing was
 * started. `away`: a connection was lost or could not be made.
 */
export type Unavailability = 'overloaded' | 'away'

/** Error messages of the pool, and of Prisma for a transaction. */
const OVERLOADED = /timeout exceeded when trying to connect|Unable to start a transaction in the given time/

/** Error messages of Postgres while it stops or starts, of its driver, of Prisma and of Node. */
const AWAY =
  /Postgres has not answered|Connection terminated|terminating connection|too many clients|database system is|Can't reach database|closed the connection|Socket timeout|timeout expired|ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOST|ENETUNREACH|ENOTFOUND|EAI_/

/** Postgres's class of error codes for a server that stops or starts. */
const SHUTTING_DOWN = /^57P0\d$/

/** Recognizes errors of an external service that does not answer; undefined for all other errors. */
export function unavailability(error: unknown): Unavailability | undefined {
  if (!(error instanceof Error)) return undefined
  if (OVERLOADED.test(error.message)) return 'overloaded'
  const { code, message } = error as NodeJS.ErrnoException
  // Some errors have only a code.
  return SHUTTING_DOWN.test(`${code}`) || AWAY.test(`${code} ${message}`) ? 'away' : undefined
}
