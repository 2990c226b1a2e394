import { AsyncLocalStorage } from 'node:async_hooks'

/** What a log line belongs to: the request in which it was written, and the turn. Ids as the API writes them. */
export type LogContext = { requestId?: string; turn?: string }

const storage = new AsyncLocalStorage<LogContext>()

/** Runs `work`, and everything that it starts, with further fields in its log lines. */
export const inLogContext = <T>(fields: LogContext, work: () => T): T =>
  storage.run({ ...storage.getStore(), ...fields }, work)

/** Fields of the line that is being written. */
export const logContext = (): LogContext => storage.getStore() ?? {}
