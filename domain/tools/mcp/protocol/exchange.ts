import { AsyncLocalStorage } from 'node:async_hooks'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'

/**
 * One call, discovery or opening of a connection, as known to its requests. The client library does not tell to which
 * call a request, its stream or a server's question belongs; the asynchronous context does.
 */
export type Exchange = {
  /** Ends its requests and their streams. */
  signal: AbortSignal
  /** Reason for a broken-off answer, which the library does not report to the waiting caller. */
  failure?: Error
  /** Whether the answer to the latest request is a stream, which is still read after the request returns. */
  isStream?: boolean
  /** Whether the answer to the latest request is a page of HTML. */
  isPage?: boolean
  /** Called with each piece of an answer. Throws beyond a limit. */
  count?: (bytes: number) => void
  /** Answers a question of the server. */
  elicit?: (params: ElicitRequest['params']) => ElicitResult
}

export const exchanges = new AsyncLocalStorage<Exchange | undefined>()
