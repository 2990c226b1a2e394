import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Readiness } from '../../domain/deps.ts'
import { judgeReadiness } from '../../domain/upkeep/health/readiness.ts'
import { ConfigError } from '../config-error.ts'

type OpsOptions = {
  host: string
  port: number
  readiness: Readiness
  /** Whether all roles of the process have started. */
  hasStarted: () => boolean
  /** Returns the metrics in Prometheus's text format. */
  readMetrics: () => Promise<string>
}

const TEXT = 'text/plain; version=0.0.4; charset=utf-8'
const HEADERS_TIMEOUT_MS = 5000
const MAX_CONNECTIONS = 50

/**
 * Serves `/metrics`, `/health`, `/health/started` and `/health/ready` on a port of its own, for the platform on which the
 * process runs: without sign-in, and for workers too. Throws ConfigError when the port cannot be had.
 */
export async function startOpsServer(options: OpsOptions): Promise<{ port: number; close(): void }> {
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: HEADERS_TIMEOUT_MS })
  server.maxConnections = MAX_CONNECTIONS
  server.on('request', (request, response) => {
    request.resume()
    answer(request, options).then(
      ({ status, body, type }) => send(response, status, body, type),
      () => send(response, 500, 'The metrics could not be read.'),
    )
  })
  const { host, port } = options
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? `port ${port} of ${host} is taken` : error.message
      reject(new ConfigError(`METRICS_PORT: ${why}`))
    })
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

type Answer = { status: number; body: string; type?: string }

async function answer({ url = '', method }: IncomingMessage, options: OpsOptions): Promise<Answer> {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, body: 'Only GET is served here.' }
  const path = url.split('?', 1)[0]
  if (path === '/metrics') return { status: 200, body: await options.readMetrics(), type: TEXT }
  if (path === '/health') return { status: 200, body: 'ok' }
  if (path === '/health/started') {
    return options.hasStarted() ? { status: 200, body: 'started' } : { status: 503, body: 'starting' }
  }
  if (path !== '/health/ready')
    return { status: 404, body: 'There are /metrics, /health, /health/started and /health/ready.' }
  const parts = await options.readiness()
  const judged = judgeReadiness(parts)
  const body = JSON.stringify({ ...judged, parts })
  return { status: 'sentence' in judged ? 503 : 200, body, type: 'application/json' }
}

function send(response: ServerResponse, status: number, body: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
