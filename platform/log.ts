import { type DestinationStream, type Logger, pino } from 'pino'
import { logContext } from '../lib/log-context.ts'
import { unavailability } from './unavailable.ts'

/** Fields in which Postgres quotes the values of a row that it rejects, such as password hashes and prompts. */
const QUOTES = ['err.detail', 'err.where', 'err.meta.driverAdapterError.cause.detail', 'err.cause.detail']

/**
 * Creates a logger that writes JSON lines, by default to standard output. A line has the ids of the request and of the
 * turn in which it was written. It never gets bodies, so no message text, key
 * or token can appear.
 */
export const createLog = (level: string, name: string, destination?: DestinationStream): Logger =>
  pino(
    {
      level,
      base: { name },
      formatters: { level: (label) => ({ level: label }) },
      mixin: logContext,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: QUOTES, remove: true },
      serializers: { err: describeError },
    },
    destination,
  )

/**
 * Serializes an error. Prisma's validation errors quote all arguments of the call; only their last line, the reason, is
 * kept. Of an outage only this line is kept as well: its stack says nothing about the cause.
 */
function describeError(error: Error): object {
  if (unavailability(error) !== undefined) return { type: error.name, message: lastLine(error.message) }
  const described = pino.stdSerializers.err(error)
  if (error?.name !== 'PrismaClientValidationError') return described
  const message = lastLine(error.message)
  return { ...described, message, stack: error.stack?.replace(error.message, () => message) }
}

const lastLine = (message: string): string => message.slice(message.lastIndexOf('\n') + 1)
