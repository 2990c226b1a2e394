import { connect } from 'node:tls'
import type { Connection } from '@temporalio/client'
import type { Logger } from 'pino'
import { sleep } from '../../lib/sleep.ts'
import { warnRarely } from '../../lib/warn-rarely.ts'
import { tlsFailure } from '../certificates.ts'
import type { TemporalOptions } from './connection.ts'

const TIMEOUT_MS = 5000
const RETRY_MS = 10_000
/** gRPC status codes. */
const [NOT_FOUND, PERMISSION_DENIED, UNAUTHENTICATED] = [5, 7, 16]

type Checked = { options: TemporalOptions; connection: Connection; namespace: string }

/**
 * Asks for the namespace until Temporal answers or the signal aborts. Logs what is wrong in a sentence that names the
 * variable: the library's own errors say only that a call took too long.
 */
export async function explainFailures(checked: Checked, log: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const reason = await findFailure(checked)
    if (reason === undefined) return
    warnRarely(log, { err: reason }, 'Temporal cannot be used')
    await sleep(RETRY_MS, signal)
  }
}

/** Returns what is wrong with the way to Temporal, undefined when the namespace was read. */
export async function findFailure({ options, connection, namespace }: Checked): Promise<string | undefined> {
  const wrong = await findTlsFailure(options)
  if (wrong !== undefined) return wrong
  try {
    await connection.withDeadline(Date.now() + TIMEOUT_MS, () =>
      connection.workflowService.describeNamespace({ namespace }),
    )
    return undefined
  } catch (error) {
    const { code, details, message } = error as { code?: number; details?: string; message: string }
    if (code === NOT_FOUND) return `TEMPORAL_NAMESPACE: there is no namespace ${namespace}`
    if (code === PERMISSION_DENIED || code === UNAUTHENTICATED) {
      const variable = options.apiKey === undefined ? 'TEMPORAL_TLS_CERT_FILE' : 'TEMPORAL_API_KEY'
      return `${variable}: Temporal refuses it for the namespace ${namespace} (${details ?? message})`
    }
    return `TEMPORAL_ADDRESS: ${options.address} does not answer (${details ?? message})`
  }
}

/** Makes a connection of its own, whose error tells why none can be made. */
function findTlsFailure({ address, tls }: TemporalOptions): Promise<string | undefined> {
  if (tls === undefined) return Promise.resolve(undefined)
  const { hostname: host, port } = new URL(`grpc://${address}`)
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port: Number(port || 7233),
      servername: tls.serverNameOverride ?? host,
      ALPNProtocols: ['h2'],
      ca: tls.serverRootCACertificate,
      cert: tls.clientCertPair?.crt,
      key: tls.clientCertPair?.key,
    })
    const end = (reason?: string) => {
      socket.destroy()
      resolve(reason)
    }
    socket.setTimeout(TIMEOUT_MS, () => end())
    // With TLS 1.3 a server refuses the client's certificate after the handshake.
    socket.on('error', (error) => {
      const reason = tlsFailure(error, 'name its authority in TEMPORAL_TLS_CA_FILE')
      const code = (error as NodeJS.ErrnoException).code ?? ''
      if (/^ERR_SSL_.*(CERTIFICATE_REQUIRED|ALERT)/.test(code))
        return end(`TEMPORAL_TLS_CERT_FILE: Temporal refuses the connection (${code})`)
      end(reason && `TEMPORAL_ADDRESS: ${reason}`)
    })
    socket.once('secureConnect', () => setTimeout(end, 100))
  })
}
