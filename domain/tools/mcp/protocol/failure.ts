import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client'
import { OutgoingError } from '../../../../lib/outgoing/outgoing-error.ts'
import { ToolError } from '../../capabilities/capability.ts'
import type { McpEndpoint } from './client.ts'
import { createRedaction, type RedactCredentials } from './credentials.ts'
import type { Exchange } from './exchange.ts'
import { McpRefused } from './refused.ts'
import { StatusError } from './status-error.ts'
import { toLine } from './text.ts'
import { BROKEN_OFF } from './transport.ts'

/** Error of this client in reading an answer, in words that follow "The MCP server …". */
export class LimitError extends Error {
  override name = 'LimitError'
}

/** Describes an error of the library or of a request, in a sentence that names the server and quotes no secret. */
export function describeFailure(endpoint: McpEndpoint, error: unknown, exchange?: Exchange): string {
  const redact = createRedaction(endpoint)
  const cause = causeOf(error, exchange)
  // Redacts the server's own words before it cuts them, because a cut secret would not be found.
  const words = addressWords(cause, exchange) ?? wordsOf(cause, endpoint, redact)
  return `The MCP server "${toLine(endpoint.name)}" ${redact(words)}`
}

/** Returns the error of a call for the model: `McpRefused` if the server wants other credentials. */
export function toToolError(endpoint: McpEndpoint, error: unknown, exchange?: Exchange): ToolError {
  const sentence = describeFailure(endpoint, error, exchange)
  const cause = causeOf(error, exchange)
  const isRefused = cause instanceof StatusError && (cause.status === 401 || cause.challenge.isScopeMissing)
  return isRefused ? new McpRefused(sentence, cause.challenge) : new ToolError(sentence)
}

/** Describes the answer of an address without an MCP server. Undefined for any other error. */
function addressWords(cause: unknown, exchange: Exchange | undefined): string | undefined {
  const http = cause instanceof SdkHttpError ? cause.data : undefined
  const status = http?.status
  const isPage =
    http === undefined
      ? exchange?.isPage === true && !OF_SERVER.some((known) => cause instanceof known)
      : /^\s*</.test(`${http.text}`)
  if (!isPage && status !== 405) return undefined
  const said =
    status === undefined
      ? 'does not answer in the protocol (MCP) but with a page of HTML'
      : `answered with the status ${status}${isPage ? ' and a page of HTML' : ''}`
  return `${said}; is this its MCP address?`
}

/** Errors that say more than an HTML page. */
const OF_SERVER = [OutgoingError, StatusError, LimitError, ProtocolError]

/** Finds the root error. */
function causeOf(error: unknown, exchange: Exchange | undefined): unknown {
  const known = knownIn(error)
  if (known !== undefined) return known
  if (exchange?.failure !== undefined && isFollowing(error)) return knownIn(exchange.failure) ?? error
  return error
}

/** Whether an error may result from a broken-off answer. */
const isFollowing = (error: unknown) =>
  isBrokenOff(error) || (error instanceof SdkError && !(error instanceof SdkHttpError)) || error instanceof SyntaxError

export const isBrokenOff = (error: unknown) => error instanceof ProtocolError && error.data === BROKEN_OFF

const MAX_CAUSES = 5

function knownIn(error: unknown, depth = 0): unknown {
  if (error instanceof OutgoingError || error instanceof StatusError || error instanceof LimitError) return error
  if (depth === MAX_CAUSES || !(error instanceof Error)) return undefined
  return knownIn(error.cause, depth + 1)
}

function wordsOf(error: unknown, endpoint: McpEndpoint, redact: RedactCredentials): string {
  if (error instanceof LimitError) return error.message
  if (error instanceof OutgoingError) return outgoingWords(error)
  if (error instanceof StatusError) return withText(statusWords(error, endpoint), error.text, redact)
  if (error instanceof SdkHttpError) {
    const { text } = error.data
    const words = statusWords({ status: error.status, retryAfterSecs: undefined }, endpoint)
    return withText(words, typeof text === 'string' ? text : '', redact)
  }
  if (error instanceof ProtocolError) return protocolWords(error, redact)
  if (error instanceof SdkError) return sdkWords(error, redact)
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

function statusWords(
  { status, retryAfterSecs }: Pick<StatusError, 'status' | 'retryAfterSecs'>,
  { apiKey, headers }: McpEndpoint,
): string {
  if (status === 401) return 'refuses the call without valid credentials (401); an administrator has to set them.'
  if (status === 403) {
    return apiKey === undefined && Object.keys(headers).length === 0
      ? 'refuses access, and has no credentials (403); an administrator may have to set them.'
      : 'refuses access with its credentials (403); an administrator has to check them.'
  }
  if (status === 429) {
    const when = retryAfterSecs === undefined ? 'later' : `after ${retryAfterSecs} s`
    return `is called too often (429); try again ${when}.`
  }
  return `answered with the status ${status}.`
}

/** Replaces the advice, which would be a guess, with the text of a refusal. */
function withText(words: string, text: string, redact: RedactCredentials): string {
  const said = messageIn(text, redact)
  return said === '' ? words : `${words.replace(/(; an administrator .*)?\.$/, '')}: ${said}`
}

const MAX_PLAIN_LENGTH = 500

/** Reads the message of a JSON-RPC error, or a short plain text. Other JSON and HTML are useless to a model. */
function messageIn(text: string, redact: RedactCredentials): string {
  try {
    const { message } = JSON.parse(text).error
    return typeof message === 'string' ? toLine(redact(message)) : ''
  } catch {
    return text.length <= MAX_PLAIN_LENGTH && !/^\s*[[{<]/.test(text) ? toLine(redact(text)) : ''
  }
}

function protocolWords(error: ProtocolError, redact: RedactCredentials): string {
  if (isBrokenOff(error)) return 'ended its answer without a result; the call may have had its effect.'
  return `refused the call (${error.code}): ${toLine(redact(error.message))}`
}

function sdkWords({ code, message, data }: SdkError, redact: RedactCredentials): string {
  if (code === SdkErrorCode.RequestTimeout) {
    const { timeout } = (data ?? {}) as { timeout?: unknown }
    return typeof timeout === 'number' ? `did not answer within ${timeout / 1000} s.` : 'did not answer in time.'
  }
  if (code === SdkErrorCode.ConnectionClosed || code === SdkErrorCode.NotConnected) {
    return 'was disconnected during the call, which may have had its effect.'
  }
  if (code === SdkErrorCode.InvalidResult || code === SdkErrorCode.UnsupportedResultType) {
    return `answered against the protocol: ${toLine(redact(message))}`
  }
  return 'does not answer in the protocol (MCP); its URL may be wrong.'
}
