import { DiagLogLevel, diag, type Tracer } from '@opentelemetry/api'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import { sleep } from '../../lib/sleep.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import type { Config } from '../config.ts'
import { version } from '../version.ts'

/** Spans that wait to be sent, and the largest number sent at once. Further spans are dropped. */
const QUEUE = { maxQueueSize: 2048, maxExportBatchSize: 512 }
/** The same for spans with contents, which have up to 192 KiB each. */
const QUEUE_OF_CONTENTS = { maxQueueSize: 128, maxExportBatchSize: 16 }
const SEND_EVERY_MS = 1000
const SEND_TIMEOUT_MS = 5000
/** Time that a stopping process gives the collector. */
const FLUSH_MS = 2000

export type TraceSettings = Pick<
  Config,
  | 'OTEL_EXPORTER_OTLP_HEADERS'
  | 'OTEL_EXPORTER_OTLP_PROTOCOL'
  | 'OTEL_SERVICE_NAME'
  | 'OTEL_TRACES_SAMPLER'
  | 'OTEL_TRACES_SAMPLER_ARG'
> & { OTEL_EXPORTER_OTLP_ENDPOINT: string }

/**
 * Sends spans to a collector in the background, from a bounded queue. A collector that is away or hangs costs spans, one
 * warning in ten seconds, and up to 2 s at the end: `flush` waits for the last spans, and sends them.
 */
export async function openExporter(
  settings: TraceSettings,
  idGenerator: IdGenerator,
  log: Logger,
  hasContent: boolean,
): Promise<{ tracer: Tracer; flush(spans: Promise<unknown>): Promise<void> }> {
  const warn = (...reasons: unknown[]) =>
    warnRarely(log, { err: reasons.map(sentenceOf).join(': ') }, 'traces not sent')
  const nothing = () => {}
  const logger = { error: warn, warn, info: nothing, debug: nothing, verbose: nothing }
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  const provider = new TracerProvider({
    idGenerator,
    resource: resourceFromAttributes({ 'service.version': version })
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(resourceFromAttributes({ 'service.name': settings.OTEL_SERVICE_NAME })),
    sampler: samplerOf(settings),
    spanProcessors: [
      new BatchSpanProcessor({
        ...(hasContent ? QUEUE_OF_CONTENTS : QUEUE),
        exporter: await createExporter(settings),
        scheduledDelayMillis: SEND_EVERY_MS,
        exportTimeoutMillis: SEND_TIMEOUT_MS,
      }),
    ],
  })
  return {
    tracer: provider.getTracer('agent-session-service', version),
    flush: async (spans) => {
      const over = new AbortController()
      const flushed = spans.then(() => provider.shutdown()).catch((error: Error) => warn(error.message))
      await Promise.race([flushed, sleep(FLUSH_MS, over.signal)])
      over.abort()
    },
  }
}

const MAX_REASON = 300

const sentenceOf = (reason: unknown): string =>
  (reason instanceof Error ? reason.message : String(reason)).slice(0, MAX_REASON)

async function createExporter(settings: TraceSettings) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers } = settings
  const options = { url: `${endpoint}/v1/traces`, headers, timeoutMillis: SEND_TIMEOUT_MS }
  const { OTLPTraceExporter } =
    settings.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto')
  return new OTLPTraceExporter(options)
}

/** Returns the sampler. With `parentbased_`, a caller's traceparent decides. */
function samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio }: TraceSettings): Sampler {
  const root = name.endsWith('always_on')
    ? new AlwaysOnSampler()
    : name.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio)
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}
