import {
  type Progress as McpProgress,
  ProtocolError,
  SdkHttpError,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/client'
import { isRecord } from '../../../../lib/is-record.ts'
import { sleep } from '../../../../lib/sleep.ts'
import { InputRequired, type Question } from '../../capabilities/questions.ts'
import type { Progress, ToolOutput } from '../../capabilities/tool-output.ts'
import type { McpCall, McpEndpoint } from '../protocol/client.ts'
import type { Connection } from '../protocol/connection.ts'
import type { RedactCredentials } from '../protocol/credentials.ts'
import { type Exchange, exchanges } from '../protocol/exchange.ts'
import { LimitError } from '../protocol/failure.ts'
import { MAX_QUESTIONS, MAX_ROUNDS, type McpTimes } from '../protocol/limits.ts'
import { toLine } from '../protocol/text.ts'
import { createInterview, stateOf } from './interview.ts'
import { checkState, toQuestion, toQuestions } from './questions.ts'
import { toOutput } from './results.ts'
import { sendCall } from './send-call.ts'

/** Whether a server did not process a call because it no longer knows the session or the protocol. */
export function wasForgotten(error: unknown, { hasSession, isStateless }: Connection): boolean {
  if (error instanceof ProtocolError) return error.code === UNSUPPORTED_VERSION
  if (!(error instanceof SdkHttpError)) return false
  if (error.status === 404) return hasSession() || isStateless
  if (error.status !== 400) return false
  return isStateless || (hasSession() && /session|initializ|protocol version/i.test(`${error.data.text}`))
}

const UNSUPPORTED_VERSION = -32_022

/**
 * Calls a tool on a connection. Throws the library's errors, `LimitError`, `ToolError` for a tool's own error,
 * `InputRequired`, or the signal's reason.
 */
export async function callOn(
  connection: Connection,
  endpoint: McpEndpoint,
  call: McpCall,
  exchange: Exchange,
  times: McpTimes,
): Promise<ToolOutput> {
  const { redact } = connection
  const interview = createInterview(call.answers, redact)
  exchange.elicit = interview.elicit
  connection.onToolsChanged = call.onToolsChanged
  connection.calls.add(exchange)
  try {
    const result = exchanges.run(exchange, () => request(connection, call, exchange.signal, times))
    const question = await Promise.race([result.then(() => undefined), interview.asked])
    if (question === undefined) return read(await result, redact, endpoint, call)
    // The tool was told that the user cancelled, and may have something to undo.
    await Promise.race([result.catch(() => {}), sleep(times.asked, exchange.signal).catch(() => {})])
    throw inputRequired(call, [question], stateOf(question))
  } catch (error) {
    if (error instanceof UrlElicitationRequiredError) throw inputRequired(call, visitsOf(error, redact))
    throw error
  } finally {
    connection.calls.delete(exchange)
  }
}

/** Runs a call, and repeats it while a stateless server asks only for that. */
async function request(connection: Connection, call: McpCall, signal: AbortSignal, times: McpTimes): Promise<unknown> {
  const round = call.answers.length
  const last = connection.isStateless ? call.answers.at(-1) : undefined
  let state = last?.state
  for (let again = 0; again < MAX_ROUNDS; again++) {
    const params = {
      name: call.tool,
      arguments: call.arguments,
      ...(again === 0 && last !== undefined && { inputResponses: last.answers }),
      ...(state !== undefined && { requestState: state }),
    }
    // Otherwise a server or proxy that knows the key could answer a later round with an earlier result.
    const suffix = `${round === 0 ? '' : `:${round}`}${again === 0 ? '' : `:again-${again}`}`
    const headers = { 'Idempotency-Key': `${call.idempotencyKey}${suffix}` }
    const onprogress = (given: McpProgress) => call.onProgress(readProgress(given, connection.redact))
    const options = { signal, headers, onprogress }
    const result = await sendCall(connection, { params, inputSchema: call.inputSchema }, options, times)
    if (!asksForNothing(result)) return result
    state = checkState(result.requestState, connection.redact)
    await sleep(times.again, signal)
  }
  throw new LimitError(`has put the call off ${MAX_ROUNDS} times.`)
}

const readProgress = ({ progress, total, message }: McpProgress, redact: RedactCredentials): Progress => ({
  progress,
  ...(total !== undefined && { total }),
  ...(message !== undefined && { message: toLine(redact(message)) }),
})

type PutOff = { resultType: 'input_required'; requestState?: unknown }

const asksForNothing = (result: unknown): result is PutOff =>
  isInputRequired(result) && Object.keys(result.inputRequests ?? {}).length === 0

const isInputRequired = (result: unknown): result is { inputRequests?: unknown; requestState?: unknown } =>
  isRecord(result) && result.resultType === 'input_required'

function read(result: unknown, redact: RedactCredentials, endpoint: McpEndpoint, call: McpCall): ToolOutput {
  if (!isInputRequired(result)) return toOutput(redact(result), endpoint.name)
  throw inputRequired(call, toQuestions(result.inputRequests, redact), checkState(result.requestState, redact))
}

function inputRequired({ answers }: McpCall, questions: Question[], state?: string): Error {
  if (answers.length < MAX_ROUNDS) return new InputRequired(questions, state)
  return new LimitError(`still asks after ${MAX_ROUNDS} rounds of questions.`)
}

/** Reads the addresses that the user must visit first, according to an error. */
function visitsOf({ elicitations }: UrlElicitationRequiredError, redact: RedactCredentials): Question[] {
  const list: unknown[] = Array.isArray(elicitations) ? elicitations : []
  if (list.length === 0) throw new LimitError('asks for a visit to an address, and does not say which.')
  if (list.length > MAX_QUESTIONS) throw new LimitError(`asks more than ${MAX_QUESTIONS} questions at once.`)
  return list.map((one, at) => toQuestion(`${at}`, one, redact))
}
