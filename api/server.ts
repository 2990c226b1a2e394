import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Deps } from '../domain/deps.ts'
import { createApp } from './app.ts'
import type { Readiness } from './routes/health.ts'
import { createSseStreams, type SseOptions } from './sse.ts'

export type ApiOptions = {
  host: string
  port: number
  version: string
  apiPrefix: string
  corsOrigins: string[]
  readiness: Readiness
  sse: SseOptions
  checkAnswers?: boolean
}

export type RunningApi = { port: number; openStreams(): number; close(): Promise<void> }

/** Answers under way at shutdown may take this long. */
const DRAIN_MS = 4000

export async function startApi(deps: Deps, options: ApiOptions): Promise<RunningApi> {
  const streams = createSseStreams(options.sse)
  const app = createApp(deps, { ...options, streams })
  // Streams and waiting POSTs last as long as they like; a request has to arrive in time.
  const server = createServer(
    { requestTimeout: 60_000, headersTimeout: 15_000, keepAliveTimeout: 65_000 },
    app.callback(),
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    openStreams: () => streams.size,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      await streams.close()
      server.closeIdleConnections()
      const force = setTimeout(() => server.closeAllConnections(), DRAIN_MS)
      await closed
      clearTimeout(force)
    },
  }
}
