import { type Logger, pino } from 'pino'

/** JSON lines on standard output. Nothing here knows bodies, so no message text, key or token can get in. */
export const createLog = (level: string, name: string): Logger =>
  pino({ level, base: { name }, timestamp: pino.stdTimeFunctions.isoTime })
