import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import { OutgoingError } from '../../lib/outgoing/outgoing-error.ts'
import type { McpEndpoint } from './client.ts'
import { createHiding, type HideCredentials } from './credentials.ts'
import type { Exchange } from './exchange.ts'
import { StatusError } from './status-error.ts'
import { toLine } from './text.ts'
import { BROKEN_OFF } from './transport.ts'

/** Error of ours in reading an answer, in words that follow "The MCP server …". */
export class LimitError extends Error {
  override name = 'LimitError'
}

/** Describes an error of the library or of a request, in a sentence that names the server and quotes no secret. */
export function describeFailure(endpoint: McpEndpoint, error: unknown, exchange?: Exchange): string {
  const hide = createHiding(endpoint)
  // What the server says is cut, so nothing must be left of its own words to be hidden here.
  const words = wordsOf(causeOf(error, exchange), hide)
  return `The MCP server "${toLine(endpoint.name)}" ${hide(words)}`
}

/** Finds the error that others follow from. */
function causeOf(error: unknown, exchange: Exchange | undefined): unknown {
  const known = knownIn(error)
  if (known !== undefined) return known
  if (exchange?.failure !== undefined && isFollowing(error)) return knownIn(exchange.failure) ?? error
  return error
}

/** Whether an error may follow from an answer that broke off. */
const isFollowing = (error: unknown) =>
  isBrokenOff(error) || (error instanceof SdkError && !(error instanceof SdkHttpError)) || error instanceof SyntaxError

export const isBrokenOff = (error: unknown) => error instanceof ProtocolError && error.data === BROKEN_OFF

const MAX_CAUSES = 5

function knownIn(error: unknown, depth = 0): unknown {
  if (error instanceof OutgoingError || error instanceof StatusError || error instanceof LimitError) return error
  if (depth === MAX_CAUSES || !(error instanceof Error)) return undefined
  return knownIn(error.cause, depth + 1)
}

function wordsOf(error: unknown, hide: HideCredentials): string {
  if (error instanceof LimitError) return error.message
  if (error instanceof OutgoingError) return outgoingWords(error)
  if (error instanceof StatusError) return statusWords(error)
  if (error instanceof SdkHttpError) return httpWords(error, hide)
  if (error instanceof ProtocolError) return protocolWords(error, hide)
  if (error instanceof SdkError) return sdkWords(error, hide)
  return 'does not answer in the protocol (MCP); its URL may be wrong.'
}

function outgoingWords({ reason, message }: OutgoingError): string {
  if (reason === 'redirect') {
    return 'redirects, and redirects are not followed; an administrator has to set its final URL.'
  }
  if (reason === 'private_address' || reason === 'invalid_url' || reason === 'invalid_request') {
    return `cannot be called: ${message}`
  }
  if (reason === 'too_large') return `sent too much: ${message}`
  return `cannot be reached: ${message}`
}

function statusWords({ status, retryAfterSecs }: Pick<StatusError, 'status' | 'retryAfterSecs'>): string {
  if (status === 401) return 'refuses the call without valid credentials (401); an administrator has to set them.'
  if (status === 403) return 'refuses access with its credentials (403); an administrator has to check them.'
  if (status === 429) {
    const when = retryAfterSecs === undefined ? 'later' : `after ${retryAfterSecs} s`
    return `is called too often (429); try again ${when}.`
  }
  return `answered with the status ${status}.`
}

function httpWords({ status, data }: SdkHttpError, hide: HideCredentials): string {
  const words = statusWords({ status: status ?? 0, retryAfterSecs: undefined })
  const message = rpcMessage(typeof data.text === 'string' ? data.text : '', hide)
  return message === '' ? words : `${words.slice(0, -1)}: ${message}`
}

/** Reads the message of a JSON-RPC error. Anything else, such as a page of HTML, says nothing to a model. */
function rpcMessage(text: string, hide: HideCredentials): string {
  try {
    const { message } = JSON.parse(text).error
    return typeof message === 'string' ? toLine(hide(message)) : ''
  } catch {
    return ''
  }
}

function protocolWords(error: ProtocolError, hide: HideCredentials): string {
  if (isBrokenOff(error)) return 'ended its answer without a result; the call may have had its effect.'
  return `refused the call (${error.code}): ${toLine(hide(error.message))}`
}

function sdkWords({ code, message, data }: SdkError, hide: HideCredentials): string {
  if (code === SdkErrorCode.RequestTimeout) {
    const { timeout } = (data ?? {}) as { timeout?: unknown }
    return typeof timeout === 'number' ? `did not answer within ${timeout / 1000} s.` : 'did not answer in time.'
  }
  if (code === SdkErrorCode.ConnectionClosed || code === SdkErrorCode.NotConnected) {
    return 'was disconnected during the call, which may have had its effect.'
  }
  if (code === SdkErrorCode.InvalidResult || code === SdkErrorCode.UnsupportedResultType) {
    return `answered against the protocol: ${toLine(hide(message))}`
  }
  return 'does not answer in the protocol (MCP); its URL may be wrong.'
}
