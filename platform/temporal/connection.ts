import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readAuthorities, readNamedFile } from '../certificates.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config-error.ts'

/** How Temporal is reached. Plain values, which a thread can be given. */
export type TemporalSettings = Pick<Config, 'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE'> &
  Partial<
    Pick<
      Config,
      | 'TEMPORAL_TLS'
      | 'TEMPORAL_TLS_CA_FILE'
      | 'TEMPORAL_TLS_CERT_FILE'
      | 'TEMPORAL_TLS_KEY_FILE'
      | 'TEMPORAL_TLS_SERVER_NAME'
      | 'TEMPORAL_API_KEY'
    >
  >

/** Options of the library's connections, native or not. */
export type TemporalOptions = {
  address: string
  tls?: {
    serverNameOverride?: string
    serverRootCACertificate?: Buffer
    clientCertPair?: { crt: Buffer; key: Buffer }
  }
  apiKey?: string
}

/** Picks the settings out of a configuration with more. */
export const temporalSettings = (config: TemporalSettings): TemporalSettings => ({
  TEMPORAL_ADDRESS: config.TEMPORAL_ADDRESS,
  TEMPORAL_NAMESPACE: config.TEMPORAL_NAMESPACE,
  TEMPORAL_TLS: config.TEMPORAL_TLS,
  TEMPORAL_TLS_CA_FILE: config.TEMPORAL_TLS_CA_FILE,
  TEMPORAL_TLS_CERT_FILE: config.TEMPORAL_TLS_CERT_FILE,
  TEMPORAL_TLS_KEY_FILE: config.TEMPORAL_TLS_KEY_FILE,
  TEMPORAL_TLS_SERVER_NAME: config.TEMPORAL_TLS_SERVER_NAME,
  TEMPORAL_API_KEY: config.TEMPORAL_API_KEY,
})

/**
 * Reads the files that the settings name. TLS is used when a setting asks for it, or when one makes no sense without.
 * Throws ConfigError for a file that cannot be used, an expired certificate, and settings that contradict each other.
 */
export function temporalOptions(settings: TemporalSettings): TemporalOptions {
  const { TEMPORAL_ADDRESS: address, TEMPORAL_API_KEY: apiKey, TEMPORAL_TLS_SERVER_NAME: serverName } = settings
  const ca = settings.TEMPORAL_TLS_CA_FILE && readAuthorities(settings.TEMPORAL_TLS_CA_FILE, 'TEMPORAL_TLS_CA_FILE')
  const clientCertPair = readIdentity(settings)
  const implied = Object.entries({
    TEMPORAL_API_KEY: apiKey,
    TEMPORAL_TLS_CA_FILE: ca,
    TEMPORAL_TLS_CERT_FILE: clientCertPair,
    TEMPORAL_TLS_SERVER_NAME: serverName,
  }).find(([, value]) => value !== undefined)
  if (settings.TEMPORAL_TLS === false && implied !== undefined)
    throw new ConfigError(`TEMPORAL_TLS: must not be false with ${implied[0]}, which needs TLS`)
  const options: TemporalOptions = { address, ...(apiKey !== undefined && { apiKey }) }
  if (!settings.TEMPORAL_TLS && implied === undefined) return options
  const tls: TemporalOptions['tls'] = {
    ...(serverName !== undefined && { serverNameOverride: serverName }),
    ...(ca !== undefined && { serverRootCACertificate: Buffer.from(ca) }),
    ...(clientCertPair && { clientCertPair }),
  }
  return { ...options, tls }
}

/** Reads the certificate with which this service identifies itself, and its key. */
function readIdentity(settings: TemporalSettings): { crt: Buffer; key: Buffer } | undefined {
  const { TEMPORAL_TLS_CERT_FILE: certFile, TEMPORAL_TLS_KEY_FILE: keyFile } = settings
  if (certFile === undefined && keyFile === undefined) return undefined
  if (keyFile === undefined) throw new ConfigError('TEMPORAL_TLS_KEY_FILE: is needed with TEMPORAL_TLS_CERT_FILE')
  if (certFile === undefined) throw new ConfigError('TEMPORAL_TLS_CERT_FILE: is needed with TEMPORAL_TLS_KEY_FILE')
  const crt = readAuthorities(certFile, 'TEMPORAL_TLS_CERT_FILE')
  const key = readNamedFile(keyFile, 'TEMPORAL_TLS_KEY_FILE')
  const certificate = new X509Certificate(crt)
  if (Date.parse(certificate.validTo) < Date.now())
    throw new ConfigError(`TEMPORAL_TLS_CERT_FILE: ${certFile} has expired on ${certificate.validTo}`)
  if (!isKeyOf(certificate, key))
    throw new ConfigError(`TEMPORAL_TLS_KEY_FILE: ${keyFile} is not the private key (PEM) of ${certFile}`)
  return { crt: Buffer.from(crt), key: Buffer.from(key) }
}

function isKeyOf(certificate: X509Certificate, key: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
