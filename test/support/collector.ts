import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Json, waitFor } from './http.ts'

/** A span as the collector got it, with its attributes by name. */
export type CollectedSpan = {
  name: string
  kind: number
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  attributes: Record<string, unknown>
  service: unknown
  isError: boolean
  /** Time in ms since 1970. */
  startedAt: number
  endedAt: number
}

export type Collector = {
  url: string
  spans: CollectedSpan[]
  /** Headers of the requests so far. */
  requests: Record<string, string | string[] | undefined>[]
  /** Waits for a span. */
  find(check: (span: CollectedSpan) => boolean, what: string): Promise<CollectedSpan>
  stop(): Promise<void>
}

/** Starts a collector that takes OTLP as JSON. With `hangs` it reads requests and never answers. */
export async function startCollector({ hangs = false } = {}): Promise<Collector> {
  const spans: CollectedSpan[] = []
  const requests: Collector['requests'] = []
  const server = createServer(async (request, response) => {
    requests.push(request.headers)
    const body = await text(request)
    if (hangs) return
    if (request.url === '/v1/traces') spans.push(...readSpans(JSON.parse(body)))
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    requests,
    find: (check, what) => waitFor(async () => spans.find(check), what),
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const readSpans = (body: Json): CollectedSpan[] =>
  body.resourceSpans.flatMap(({ resource, scopeSpans }: Json) =>
    scopeSpans.flatMap((scope: Json) =>
      scope.spans.map((span: Json) => ({
        name: span.name,
        kind: span.kind,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId,
        attributes: toRecord(span.attributes),
        service: toRecord(resource.attributes)['service.name'],
        isError: span.status.code === 2,
        startedAt: Number(span.startTimeUnixNano) / 1e6,
        endedAt: Number(span.endTimeUnixNano) / 1e6,
      })),
    ),
  )

const toRecord = (attributes: Json[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]))

function toValue(value: Json): unknown {
  if (value.arrayValue !== undefined) return value.arrayValue.values.map(toValue)
  if (value.intValue !== undefined) return Number(value.intValue)
  return Object.values(value)[0]
}
