import {
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type TransportSendOptions,
} from '@modelcontextprotocol/client'
import { exchanges } from './exchange.ts'
import { MAX_ANSWERS, MAX_REOPENINGS, type McpTimes } from './limits.ts'

/** Maximum pause, whether requested by a server or growing in the library. */
const MAX_RECONNECT_MS = 30_000

/** Data of the error that replaces the result when an answer ends without one. No server can send this object. */
export const BROKEN_OFF = {}
const BROKEN_OFF_CODE = -32_000

type Options = { headers: Record<string, string>; fetch: typeof fetch; times: McpTimes }

/**
 * Transport whose requests end with their exchange, and fail if an answer ends without a result. The library's
 * transport would wait until the time limit.
 */
export class McpTransport extends StreamableHTTPClientTransport {
  readonly #reconnections: Set<NodeJS.Timeout>
  #answers = 0

  /** Must be created in the exchange of its connecting, which owns the stream of the session. */
  constructor(url: URL, { headers, fetch, times }: Options) {
    const reconnections = new Set<NodeJS.Timeout>()
    const opening = exchanges.getStore()
    let reopenings = 0
    super(url, {
      requestInit: { headers },
      fetch: (address, init) => fetch(address, init),
      // The server may ask for any pause, even 0.
      reconnectionScheduler: (reconnect, delayMs) => {
        // A call's stream ends with the call, the session's stream only with the connection.
        if (exchanges.getStore() === opening && ++reopenings > MAX_REOPENINGS) {
          throw new Error('The stream of the session broke off too often.')
        }
        const waitMs = Math.min(Math.max(delayMs, times.reconnect), MAX_RECONNECT_MS)
        const timer = setTimeout(() => {
          reconnections.delete(timer)
          reconnect()
        }, waitMs)
        reconnections.add(timer)
      },
    })
    this.#reconnections = reconnections
  }

  override async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    if (isJSONRPCResponse(message) && ++this.#answers > MAX_ANSWERS) throw new Error('The server asks too often.')
    if (!isJSONRPCRequest(message)) return super.send(message, options)
    const exchange = exchanges.getStore()
    const breakOff = () => this.#answer(message.id)
    const signals = [options.requestSignal, exchange?.signal].filter((signal) => signal !== undefined)
    await super.send(message, {
      onRequestStreamEnd: breakOff,
      ...options,
      ...(signals.length > 0 && { requestSignal: AbortSignal.any(signals) }),
    })
    // The library ignores the error if the answer has already arrived.
    if (exchange !== undefined && exchange.isStream !== true) breakOff()
  }

  override async close(): Promise<void> {
    for (const timer of this.#reconnections) clearTimeout(timer)
    this.#reconnections.clear()
    await super.close()
  }

  #answer(id: string | number): void {
    const message = 'The answer ended without a result.'
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code: BROKEN_OFF_CODE, message, data: BROKEN_OFF } })
  }
}
