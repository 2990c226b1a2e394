/**
 * `overloaded`: no connection to Postgres came free in time, so nothing was begun. `away`: a connection was lost, or there
 * is none to be had.
 */
export type Unavailability = 'overloaded' | 'away'

/** The words of the pool, and Prisma's for a transaction. */
const OVERLOADED = /timeout exceeded when trying to connect|Unable to start a transaction in the given time/

/** The words of Postgres as it stops and starts, of its driver, of Prisma and of Node; 57P is Postgres's class of them. */
const AWAY =
  /Postgres has not answered|Connection terminated|terminating connection|too many clients|database system is|Can't reach database|closed the connection|Socket timeout|timeout expired|\b57P0\d|ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOST|ENETUNREACH|ENOTFOUND|EAI_/

/** Tells a part of the outside world that does not answer from every other failure. Undefined for the others. */
export function unavailability(error: unknown): Unavailability | undefined {
  if (!(error instanceof Error)) return undefined
  if (OVERLOADED.test(error.message)) return 'overloaded'
  // Of some errors there is only a code.
  return AWAY.test(`${(error as NodeJS.ErrnoException).code} ${error.message}`) ? 'away' : undefined
}
