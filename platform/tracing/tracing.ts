import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import type { Logger } from 'pino'
import { toId } from '../../domain/kit/ids.ts'
import type { TracedAnswer, TracedTurn, Tracing } from '../../domain/kit/tracing.ts'
import { formatTraceparent, parseTraceparent } from '../../lib/traceparent.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import { describeInput, describeInstructions, describeOutput, describeValue } from './content.ts'
import { ATTRIBUTE, OPERATION, providerOf } from './conventions.ts'
import { openExporter, type TraceSettings } from './exporter.ts'
import { createSpanIds, idsOfTurn } from './span-ids.ts'
import { type EndedTurn, readEndedTurn, turnAttributes } from './turn-span.ts'

/** Spans of turns that are being read from the record. Further ones are lost. */
const MAX_READS = 50
const ENDS = new Set(['turn.completed', 'turn.failed', 'turn.cancelled'])

export type ProcessTracing = Tracing & {
  /** Sends what is left, for at most 2 s. */
  close(): Promise<void>
}

type Options = {
  settings: TraceSettings
  /** Whether spans have prompts, answers, and arguments and results of tools. */
  hasContent: boolean
  db: PrismaClient
  log: Logger
}

/** Traces this process with OpenTelemetry. Nothing of OpenTelemetry is loaded where nobody traces. */
export async function createTracing({ settings, hasContent, db, log }: Options): Promise<ProcessTracing> {
  const ids = createSpanIds()
  const { tracer, flush } = await openExporter(settings, ids.generator, log, hasContent)
  const current = new AsyncLocalStorage<SpanContext | undefined>()
  const reads = new Set<Promise<void>>()

  /** Starts the span of a turn. Only the process that records the end of the turn ends it; others need its place. */
  const startTurn = ({ turnId, traceparent }: TracedTurn, name: string, startTime?: Date): Span =>
    ids.withIds(idsOfTurn(turnId), () =>
      tracer.startSpan(name, startTime ? { startTime } : {}, contextOf(traceparent ?? '')),
    )
  const startStep = (name: string, kind: SpanKind, turn: TracedTurn, attributes: Attributes): Span => {
    const ofTurn = {
      [ATTRIBUTE.conversation]: toId('session', turn.sessionId),
      [ATTRIBUTE.turn]: toId('turn', turn.turnId),
    }
    const parent = trace.setSpan(ROOT_CONTEXT, startTurn(turn, OPERATION.turn))
    return tracer.startSpan(name, { kind, attributes: { ...attributes, ...ofTurn } }, parent)
  }
  const run = async <T>(span: Span, work: () => Promise<T>, describe: (done: T) => Attributes): Promise<T> => {
    try {
      const done = await current.run(span.spanContext(), work)
      end(span, describe(done))
      return done
    } catch (error) {
      end(span, { [ATTRIBUTE.errorType]: errorTypeOf(error) })
      throw error
    }
  }
  const emitTurn = async (turnId: string) => {
    const ended = await readEndedTurn(db, turnId)
    if (ended === undefined) return
    const span = startTurn(ended, nameOf(ended), ended.startedAt)
    end(span, turnAttributes(ended), ended.finishedAt)
  }

  return {
    traceparent: () => {
      const place = current.getStore()
      return place && formatTraceparent({ ...place, isSampled: (place.traceFlags & TraceFlags.SAMPLED) !== 0 })
    },
    receive: ({ method, traceparent, requestId }) => {
      const attributes = { [ATTRIBUTE.method]: method, [ATTRIBUTE.request]: requestId }
      const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes }, contextOf(traceparent))
      return {
        within: (work) => current.run(span.spanContext(), work),
        end: ({ route, status }) => {
          if (route !== null) span.updateName(`${method} ${route}`)
          const failed = status >= 500 ? { [ATTRIBUTE.errorType]: String(status) } : {}
          end(span, { ...(route !== null && { [ATTRIBUTE.route]: route }), [ATTRIBUTE.status]: status, ...failed })
        },
      }
    },
    modelCall: ({ turn, iteration, provider, model, systemPrompt, messages }, work) => {
      const span = startStep(`${OPERATION.modelCall} ${model}`, SpanKind.CLIENT, turn, {
        [ATTRIBUTE.operation]: OPERATION.modelCall,
        [ATTRIBUTE.provider]: providerOf(provider),
        [ATTRIBUTE.requestModel]: model,
        [ATTRIBUTE.requestStream]: true,
        [ATTRIBUTE.iteration]: iteration,
      })
      if (hasContent && span.isRecording()) {
        span.setAttribute(ATTRIBUTE.systemInstructions, describeInstructions(systemPrompt))
        span.setAttribute(ATTRIBUTE.inputMessages, describeInput(messages))
      }
      return run(span, work, (answer) => ({
        ...answerAttributes(answer),
        ...(hasContent && { [ATTRIBUTE.outputMessages]: describeOutput(answer) }),
      }))
    },
    toolCall: ({ turn, iteration, name, callId, arguments: args }, work, resultOf) => {
      const span = startStep(`${OPERATION.toolCall} ${name}`, SpanKind.INTERNAL, turn, {
        [ATTRIBUTE.operation]: OPERATION.toolCall,
        [ATTRIBUTE.tool]: name,
        [ATTRIBUTE.toolType]: 'function',
        [ATTRIBUTE.toolCall]: callId,
        [ATTRIBUTE.iteration]: iteration,
        ...(hasContent && { [ATTRIBUTE.toolArguments]: describeValue(args) }),
      })
      return run(span, work, (done) => {
        const { errorType, content } = resultOf(done)
        return {
          ...(errorType !== undefined && { [ATTRIBUTE.errorType]: errorType }),
          ...(hasContent && content !== undefined && { [ATTRIBUTE.toolResult]: describeValue(content) }),
        }
      })
    },
    send: ({ method }, work) => {
      const attributes = { [ATTRIBUTE.method]: method }
      const span = tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, ROOT_CONTEXT)
      return run(span, work, ({ status }) => ({
        [ATTRIBUTE.status]: status,
        ...(status >= 400 && { [ATTRIBUTE.errorType]: String(status) }),
      }))
    },
    apart: (work) => current.run(undefined, work),
    recorded: (turnId, events) => {
      if (reads.size >= MAX_READS || !events.some(({ type }) => ENDS.has(type))) return
      const read = emitTurn(turnId)
        .catch((error: Error) => warnRarely(log, { err: error.message }, 'span of a turn lost'))
        .finally(() => reads.delete(read))
      reads.add(read)
    },
    close: () => flush(Promise.all(reads)),
  }
}

const nameOf = ({ agentName }: EndedTurn): string =>
  agentName === null ? OPERATION.turn : `${OPERATION.turn} ${agentName}`

/** Returns the context below the place that a traceparent names. A malformed one counts as none. */
function contextOf(traceparent: string): Context {
  const place = parseTraceparent(traceparent)
  if (place === undefined) return ROOT_CONTEXT
  const { traceId, spanId, isSampled } = place
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true })
}

function end(span: Span, attributes: Attributes, at?: Date): void {
  span.setAttributes(attributes)
  if (attributes[ATTRIBUTE.errorType] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
  span.end(at)
}

/** Returns the status of a provider's failure, or the name of the error. Its message may quote a prompt. */
function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER'
  return 'status' in error && typeof error.status === 'number' ? String(error.status) : error.name
}

const answerAttributes = ({ usage, finishReason, responseId, firstPartMs }: TracedAnswer): Attributes => ({
  [ATTRIBUTE.inputTokens]: usage.input_tokens,
  [ATTRIBUTE.outputTokens]: usage.output_tokens,
  [ATTRIBUTE.cacheReadTokens]: usage.cache_read_tokens ?? undefined,
  [ATTRIBUTE.cacheCreationTokens]: usage.cache_creation_tokens ?? undefined,
  [ATTRIBUTE.finishReasons]: [finishReason],
  [ATTRIBUTE.responseId]: responseId,
  [ATTRIBUTE.firstChunkSeconds]: firstPartMs === undefined ? undefined : firstPartMs / 1000,
})
