import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createSecureServer } from 'node:http2'
import { type AddressInfo, connect, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createServer, type TlsOptions } from 'node:tls'
import { Connection } from '@temporalio/client'
import { findFailure } from '../../../platform/temporal/check.ts'
import { type TemporalSettings, temporalOptions } from '../../../platform/temporal/connection.ts'
import { AUTHORITY, EXPIRED_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY } from '../../support/certificates.ts'
import { createSession, waitUntilIdle } from '../../support/http.ts'
import { expectSoundRecord } from '../../support/record.ts'
import { withService } from '../../support/service.ts'
import { post } from '../../support/turns.ts'
import { UNTRUSTED } from '../../support/untrusted-certificate.ts'

const MUTUAL = { ca: AUTHORITY, requestCert: true, rejectUnauthorized: true }

let folder: string
const file = (name: string) => path.join(folder, name)
const servers: Server[] = []
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'agent-sessions-temporal-'))
  const files = {
    ca: AUTHORITY,
    other: UNTRUSTED.cert,
    cert: SERVER_CERTIFICATE,
    key: SERVER_KEY,
    wrong: UNTRUSTED.key,
  }
  for (const [name, text] of Object.entries({ ...files, expired: EXPIRED_CERTIFICATE, empty: '\n', text: 'no PEM' }))
    await writeFile(file(name), text)
})
afterAll(async () => {
  for (const server of servers) server.close()
  await rm(folder, { recursive: true })
})

async function listen(server: Server): Promise<string> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Serves the run's Temporal with TLS. */
function startTls(options: TlsOptions): Promise<string> {
  const { hostname, port } = new URL(`grpc://${process.env.TEMPORAL_ADDRESS}`)
  const own = { key: SERVER_KEY, cert: SERVER_CERTIFICATE, ALPNProtocols: ['h2'], ...options }
  const server = createServer(own, (socket) => {
    const target = connect(Number(port), hostname)
    socket.pipe(target).pipe(socket)
    for (const [one, other] of [
      [socket, target],
      [target, socket],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy())
  })
  return listen(server.on('tlsClientError', () => {}))
}

const settings = (more: Partial<TemporalSettings> = {}): TemporalSettings => ({
  TEMPORAL_ADDRESS: '127.0.0.1:1',
  TEMPORAL_NAMESPACE: 'default',
  ...more,
})
const identity = () => ({ TEMPORAL_TLS_CERT_FILE: file('cert'), TEMPORAL_TLS_KEY_FILE: file('key') })

async function failureOf(more: Partial<TemporalSettings>): Promise<string | undefined> {
  const all = settings(more)
  const options = temporalOptions(all)
  const connection = Connection.lazy({ ...options, connectTimeout: 2000 })
  const failure = await findFailure({ options, connection, namespace: all.TEMPORAL_NAMESPACE })
  await connection.close()
  return failure
}

it('runs turns through a Temporal that asks for certificates', async () => {
  const TEMPORAL_ADDRESS = await startTls(MUTUAL)
  const environment = { TEMPORAL_ADDRESS, TEMPORAL_TLS_CA_FILE: file('ca'), ...identity() }
  await withService({ environment }, async (service) => {
    const id = await createSession(service.url)
    await post(service.url, id)
    expectSoundRecord(await waitUntilIdle(service.url, id))
  })
})

it('says in a sentence why Temporal cannot be used', async () => {
  const mutual = { TEMPORAL_ADDRESS: await startTls(MUTUAL), TEMPORAL_TLS_CA_FILE: file('ca') }
  const expired = await startTls({ cert: EXPIRED_CERTIFICATE })
  const cases: [Partial<TemporalSettings>, RegExp | undefined][] = [
    [{ ...mutual, ...identity() }, undefined],
    [
      { ...mutual, ...identity(), TEMPORAL_NAMESPACE: 'nowhere' },
      /^TEMPORAL_NAMESPACE: there is no namespace nowhere$/,
    ],
    [
      { ...mutual, ...identity(), TEMPORAL_TLS_CA_FILE: file('other') },
      /^TEMPORAL_ADDRESS: no trusted authority .*_CA_FILE$/,
    ],
    [
      { ...mutual, ...identity(), TEMPORAL_TLS_SERVER_NAME: 'x.test' },
      /^TEMPORAL_ADDRESS: the server's certificate is for /,
    ],
    [mutual, /^TEMPORAL_TLS_CERT_FILE: Temporal refuses the connection/],
    [
      { TEMPORAL_ADDRESS: expired, TEMPORAL_TLS_CA_FILE: file('ca') },
      /^TEMPORAL_ADDRESS: the server's certificate has expired$/,
    ],
    [{}, /^TEMPORAL_ADDRESS: 127\.0\.0\.1:1 does not answer/],
  ]
  for (const [more, sentence] of cases) {
    const failure = await failureOf(more)
    if (sentence === undefined) expect(failure).toBeUndefined()
    else expect(failure).toMatch(sentence)
  }
})

it('sends its API key, and says so when that is refused', async () => {
  const keys: unknown[] = []
  const server = createSecureServer({ key: SERVER_KEY, cert: SERVER_CERTIFICATE }).on('stream', (stream, headers) => {
    keys.push(headers.authorization)
    const refused = { 'grpc-status': '16', 'grpc-message': 'unknown key' }
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...refused }, { endStream: true })
  })
  const TEMPORAL_ADDRESS = await listen(server)
  const failure = await failureOf({ TEMPORAL_ADDRESS, TEMPORAL_TLS_CA_FILE: file('ca'), TEMPORAL_API_KEY: 'of-a-test' })
  expect(failure).toMatch(/^TEMPORAL_API_KEY: Temporal refuses it for the namespace default \(.*unknown key/)
  expect(new Set(keys)).toEqual(new Set(['Bearer of-a-test']))
})

it('refuses settings that cannot be used, in a sentence', () => {
  const cases: [Partial<TemporalSettings>, RegExp][] = [
    [{ TEMPORAL_TLS_CA_FILE: file('none') }, /^TEMPORAL_TLS_CA_FILE: .*none cannot be read \(ENOENT\)$/],
    [{ TEMPORAL_TLS_CA_FILE: file('empty') }, /^TEMPORAL_TLS_CA_FILE: .*empty is empty$/],
    [{ TEMPORAL_TLS_CA_FILE: file('text') }, /^TEMPORAL_TLS_CA_FILE: .*text holds no certificate in PEM$/],
    [{ TEMPORAL_TLS_CERT_FILE: file('cert') }, /^TEMPORAL_TLS_KEY_FILE: is needed with TEMPORAL_TLS_CERT_FILE$/],
    [{ TEMPORAL_TLS_KEY_FILE: file('key') }, /^TEMPORAL_TLS_CERT_FILE: is needed with TEMPORAL_TLS_KEY_FILE$/],
    [{ ...identity(), TEMPORAL_TLS_CERT_FILE: file('expired') }, /^TEMPORAL_TLS_CERT_FILE: .*expired has expired on /],
    [{ ...identity(), TEMPORAL_TLS_KEY_FILE: file('wrong') }, /^TEMPORAL_TLS_KEY_FILE: .*wrong is not the private key/],
    [{ TEMPORAL_TLS: false, TEMPORAL_API_KEY: 'x' }, /^TEMPORAL_TLS: must not be false with TEMPORAL_API_KEY/],
  ]
  for (const [more, sentence] of cases) expect(() => temporalOptions(settings(more))).toThrow(sentence)
  expect(temporalOptions(settings())).toEqual({ address: '127.0.0.1:1' })
  expect(temporalOptions(settings({ TEMPORAL_API_KEY: 'x' }))).toEqual({ address: '127.0.0.1:1', apiKey: 'x', tls: {} })
})
