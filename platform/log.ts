import { type DestinationStream, type Logger, pino } from 'pino'

/** Of a row that Postgres refuses, it quotes the values there: hashes of passwords, prompts. */
const QUOTES = ['err.detail', 'err.where', 'err.meta.driverAdapterError.cause.detail', 'err.cause.detail']

/** JSON lines, on standard output by default. Nothing here knows bodies, so no message text, key or token can get in. */
export const createLog = (level: string, name: string, destination?: DestinationStream): Logger =>
  pino(
    {
      level,
      base: { name },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: QUOTES, remove: true },
      serializers: { err: describeError },
    },
    destination,
  )

/** Prisma prints all arguments of a call that it does not understand, and then, in the last line, what is wrong with it. */
function describeError(error: Error): object {
  const described = pino.stdSerializers.err(error)
  if (error?.name !== 'PrismaClientValidationError') return described
  const message = error.message.slice(error.message.lastIndexOf('\n') + 1)
  return { ...described, message, stack: error.stack?.replace(error.message, () => message) }
}
