import { once } from 'node:events'
import { connect } from 'node:net'
import pg from 'pg'
import { readAuthorities, readNamedFile } from '../certificates.ts'
import type { Config } from '../config.ts'
import { ConfigError } from '../config-error.ts'

/** The database of the service, and how it is reached. */
export type PostgresSettings = Pick<Config, 'DATABASE_URL'> &
  Partial<Pick<Config, 'DATABASE_CA_FILE' | 'DATABASE_POOLER'>> & {
    /** Variable that the address comes from, for sentences. Default: DATABASE_URL. */
    variable?: string
  }

/** The modes of libpq, and the driver's own `no-verify`. */
const MODES = ['disable', 'allow', 'prefer', 'require', 'no-verify', 'verify-ca', 'verify-full']

/** Limits of the driver for `ssl=` in an address, which are older than `sslmode`. */
const OF_SSL: Record<string, string> = { true: 'verify-full', '1': 'verify-full', 'no-verify': 'no-verify' }

type Tls = Exclude<pg.ClientConfig['ssl'], undefined>

/**
 * Returns the driver's options for an address whose `sslmode` and `sslrootcert` mean the same as in libpq; the driver
 * itself takes every mode for `verify-full`. Throws ConfigError for a file that cannot be read.
 */
export function postgresOptions(settings: PostgresSettings): pg.ClientConfig {
  const { place, parameters, mode, variable } = readAddress(settings)
  const files = Object.fromEntries(
    ['sslrootcert', 'sslcert', 'sslkey'].map((name) => [name, parameters.get(name) ?? undefined]),
  )
  const effective = mode ?? (settings.DATABASE_CA_FILE || files.sslrootcert ? 'verify-full' : undefined)
  if (effective === undefined) return { connectionString: settings.DATABASE_URL }
  for (const name of ['ssl', 'sslmode', 'uselibpqcompat', ...Object.keys(files)]) parameters.delete(name)
  const read = (name: string) => files[name] && readNamedFile(files[name], `${variable} (${name})`)
  const identity = { cert: read('sslcert'), key: read('sslkey') }
  const tls = verification(effective, readTrusted(files.sslrootcert, settings.DATABASE_CA_FILE, variable), variable)
  return {
    connectionString: parameters.size === 0 ? place : `${place}?${parameters}`,
    ssl: typeof tls === 'object' ? { ...identity, ...tls } : tls,
  }
}

/** Reads an address as text, since `URL` rejects `postgres://user@/database?host=/run`. */
function readAddress({ DATABASE_URL, variable = 'DATABASE_URL' }: PostgresSettings) {
  const [place = '', query] = DATABASE_URL.split('?', 2)
  const parameters = new URLSearchParams(query)
  const mode = parameters.get('sslmode') ?? OF_SSL[parameters.get('ssl') ?? '']
  if (mode !== undefined && !MODES.includes(mode))
    throw new ConfigError(`${variable}: sslmode must be one of ${MODES.join(', ')}, not ${mode}`)
  return { place, parameters, mode, variable }
}

/** Reads the trusted authorities. Undefined: Node's own, and NODE_EXTRA_CA_CERTS. */
function readTrusted(rootFile: string | undefined, caFile: string | undefined, variable: string): string | undefined {
  if (rootFile === 'system') return undefined
  if (rootFile) return readAuthorities(rootFile, `${variable} (sslrootcert)`)
  return caFile && readAuthorities(caFile, 'DATABASE_CA_FILE')
}

function verification(mode: string, ca: string | undefined, variable: string): Tls {
  if (mode === 'disable') return false
  if (mode === 'verify-full') return { ca }
  // As in libpq, where `require` with an authority is `verify-ca`.
  if (ca !== undefined && (mode === 'verify-ca' || mode === 'require'))
    return { ca, checkServerIdentity: () => undefined }
  if (mode === 'verify-ca')
    throw new ConfigError(`${variable}: sslmode=verify-ca needs an authority: sslrootcert, or DATABASE_CA_FILE`)
  return { rejectUnauthorized: false }
}

/**
 * Replaces `sslmode=prefer` and `allow` by what the server offers: `no-verify`, or `disable` if it speaks no TLS. The
 * driver cannot go back to a connection without TLS.
 */
export async function settleTls<Settings extends PostgresSettings>(settings: Settings): Promise<Settings> {
  const { place, parameters, mode } = readAddress(settings)
  if (mode !== 'prefer' && mode !== 'allow') return settings
  parameters.delete('sslmode')
  const { host, port } = new pg.Client({ connectionString: `${place}?${parameters}`, ssl: false })
  parameters.set('sslmode', (await speaksTls(host, port)) ? 'no-verify' : 'disable')
  return { ...settings, DATABASE_URL: `${place}?${parameters}` }
}

/** Length and number of the protocol's SSLRequest. */
const TLS_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const PROBE_TIMEOUT_MS = 5000

async function speaksTls(host: string, port: number): Promise<boolean> {
  if (host.startsWith('/')) return false
  const socket = connect({ host, port })
  try {
    socket.setTimeout(PROBE_TIMEOUT_MS, () => socket.destroy(new Error('timeout: Postgres does not answer')))
    // Otherwise nothing would report a server that hangs up.
    socket.on('end', () => socket.destroy(Object.assign(new Error('Postgres hung up'), { code: 'ECONNRESET' })))
    socket.write(TLS_REQUEST)
    const [answer] = (await once(socket, 'data')) as [Buffer]
    return answer.toString('latin1', 0, 1) === 'S'
  } finally {
    socket.destroy()
  }
}
