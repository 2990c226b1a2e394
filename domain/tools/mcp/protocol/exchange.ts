import { AsyncLocalStorage } from 'node:async_hooks'
import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client'

/**
 * One call, one discovery or one opening of a connection, as the requests that it makes know it. The client library does
 * not say to which call a request, its stream or a question of the server belongs; the asynchronous context does.
 */
export type Exchange = {
  /** Ends its requests and their streams. */
  signal: AbortSignal
  /** Why an answer broke off, which the library reports to nobody who waits for it. */
  failure?: Error
  /** Whether the answer to the latest request is a stream, which is still being read when the request has returned. */
  isStream?: boolean
  /** Whether the answer to the latest request is a page of HTML. */
  isPage?: boolean
  /** Called with each piece of an answer. Throws when it is too much. */
  count?: (bytes: number) => void
  /** Answers a question of the server. */
  elicit?: (params: ElicitRequest['params']) => ElicitResult
}

export const exchanges = new AsyncLocalStorage<Exchange | undefined>()
