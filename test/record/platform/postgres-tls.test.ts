import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import type { Service } from '../../../dev/services/index.ts'
import { createLog } from '../../../platform/log.ts'
import type { PostgresSettings } from '../../../platform/postgres/connection.ts'
import { withPool } from '../../../platform/postgres/migrate.ts'
import { waitForPostgres } from '../../../platform/wiring/wait-for-postgres.ts'
import {
  AUTHORITY,
  EXPIRED_CERTIFICATE,
  OTHER_HOST_CERTIFICATE,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from '../../support/certificates.ts'
import { waitFor } from '../../support/http.ts'
import { privatePostgres } from '../../support/private-services.ts'
import { runToEnd } from '../../support/process.ts'
import { UNTRUSTED } from '../../support/untrusted-certificate.ts'

const place = privatePostgres()
let postgres: Service
let admin: pg.Client
let folder: string
beforeAll(async () => {
  postgres = await place.start()
  admin = new pg.Client({ connectionString: postgres.url })
  await admin.connect()
  folder = await mkdtemp(path.join(tmpdir(), 'agent-sessions-authorities-'))
  await writeFile(path.join(folder, 'ca.crt'), AUTHORITY)
  await writeFile(path.join(folder, 'other.crt'), UNTRUSTED.cert)
  await writeFile(path.join(folder, 'empty.crt'), '\n')
  await writeFile(path.join(folder, 'text.crt'), 'no certificate')
})
afterAll(async () => {
  await admin.end()
  await postgres.stop()
  await place.remove()
  await rm(folder, { recursive: true })
})

/** Writes a file into the folder of the server, as its user. */
const write = (file: string, text: string) =>
  admin.query(`COPY (SELECT unnest(string_to_array(${pg.escapeLiteral(text.trim())}, chr(10))))
    TO PROGRAM 'umask 077; cat > ${file}'`)

/** Has the server show a certificate, or speak no TLS. */
async function serve(certificate: string | undefined): Promise<void> {
  if (certificate !== undefined) {
    await write('server.key', SERVER_KEY)
    await write('server.crt', certificate)
  }
  await admin.query(`ALTER SYSTEM SET ssl = ${certificate === undefined ? 'off' : 'on'}`)
  const { rows } = await admin.query('SELECT pg_conf_load_time() AS loaded, pg_reload_conf()')
  await waitFor(async () => {
    const { rows: now } = await admin.query('SELECT pg_conf_load_time() AS loaded')
    return now[0].loaded > rows[0].loaded
  }, 'the settings of TLS')
}

const settingsOf = (parameters: string, file?: string): PostgresSettings => ({
  DATABASE_URL: `${postgres.url}?${parameters.replace('FOLDER', folder)}`,
  ...(file && { DATABASE_CA_FILE: path.join(folder, file) }),
})

/** Tells whether a connection is encrypted, or the sentence with which the start ends. */
const connect = (settings: PostgresSettings): Promise<unknown> =>
  waitForPostgres(
    () =>
      withPool(settings, async (pool) => {
        const { rows } = await pool.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')
        return rows[0].ssl
      }),
    createLog('silent', 'test'),
    AbortSignal.timeout(20_000),
  ).catch((error: Error) => (error.name === 'ConfigError' ? error.message.replaceAll(folder, 'FOLDER') : error))

const NOT_TRUSTED =
  /^DATABASE_URL: no trusted authority signed the server's certificate \(\w+\): name its authority in DATABASE_CA_FILE, /

describe('a Postgres with TLS and a private authority', () => {
  beforeAll(() => serve(SERVER_CERTIFICATE))

  it.each([
    ['', undefined, false],
    ['sslmode=disable', undefined, false],
    ['sslmode=prefer', undefined, true],
    ['sslmode=allow', undefined, true],
    ['sslmode=require', undefined, true],
    ['sslmode=no-verify', undefined, true],
    ['sslmode=no-verify', 'other.crt', true],
    ['sslmode=require', 'ca.crt', true],
    ['sslmode=verify-ca&sslrootcert=FOLDER/ca.crt', undefined, true],
    ['sslmode=verify-full&sslrootcert=FOLDER/ca.crt', undefined, true],
    ['sslmode=verify-full&sslrootcert=FOLDER/ca.crt', 'other.crt', true],
    ['', 'ca.crt', true],
    ['ssl=true', 'ca.crt', true],
  ])('is reached with %s and the file %s', async (parameters, file, isEncrypted) => {
    expect(await connect(settingsOf(parameters, file))).toBe(isEncrypted)
  })

  it.each([
    ['sslmode=verify-full', undefined, NOT_TRUSTED],
    ['ssl=true', undefined, NOT_TRUSTED],
    ['', 'other.crt', NOT_TRUSTED],
    ['sslmode=require', 'other.crt', NOT_TRUSTED],
    [
      'sslmode=verify-ca',
      undefined,
      /^DATABASE_URL: sslmode=verify-ca needs an authority: sslrootcert, or DATABASE_CA_/,
    ],
    ['sslmode=strict', undefined, /^DATABASE_URL: sslmode must be one of disable, allow, /],
    ['', 'missing.crt', /^DATABASE_CA_FILE: FOLDER\/missing.crt cannot be read \(ENOENT\)$/],
    ['', 'empty.crt', /^DATABASE_CA_FILE: FOLDER\/empty.crt is empty$/],
    ['', 'text.crt', /^DATABASE_CA_FILE: FOLDER\/text.crt holds no certificate in PEM$/],
    ['sslrootcert=FOLDER/missing.crt', undefined, /^DATABASE_URL \(sslrootcert\): FOLDER\/missing.crt cannot be read/],
  ])('is refused in one sentence with %s and the file %s', async (parameters, file, sentence) => {
    expect(await connect(settingsOf(parameters, file))).toMatch(sentence)
  })

  it('is named by the variable of migrations', async () => {
    const settings = { ...settingsOf('sslmode=verify-ca'), variable: 'DATABASE_MIGRATION_URL' }
    expect(await connect(settings)).toMatch(/^DATABASE_MIGRATION_URL: sslmode=verify-ca needs an authority/)
  })

  it('ends the process with the sentence, and no stack', async () => {
    const { DATABASE_URL } = settingsOf('sslmode=verify-full')
    const { code, output } = await runToEnd('main.ts', { DATABASE_URL })
    expect(code).toBe(1)
    expect(output.trim().split('\n')).toEqual([
      'The service cannot start with this environment:',
      expect.stringMatching(NOT_TRUSTED),
    ])
  })
})

describe('a Postgres with a certificate for another host', () => {
  beforeAll(() => serve(OTHER_HOST_CERTIFICATE))

  it('is refused by verify-full alone', async () => {
    expect(await connect(settingsOf('sslmode=verify-full', 'ca.crt'))).toBe(
      "DATABASE_URL: the server's certificate is for DNS:db.example.com, not for 127.0.0.1",
    )
    expect(await connect(settingsOf('sslmode=verify-ca', 'ca.crt'))).toBe(true)
  })
})

describe('a Postgres with an expired certificate', () => {
  beforeAll(() => serve(EXPIRED_CERTIFICATE))

  it('is refused where certificates are verified', async () => {
    const sentence = "DATABASE_URL: the server's certificate has expired"
    expect(await connect(settingsOf('sslmode=verify-full', 'ca.crt'))).toBe(sentence)
    expect(await connect(settingsOf('sslmode=require', 'ca.crt'))).toBe(sentence)
    expect(await connect(settingsOf('sslmode=require'))).toBe(true)
  })
})

describe('a Postgres without TLS', () => {
  beforeAll(() => serve(undefined))

  it('is refused where TLS is wanted', async () => {
    expect(await connect(settingsOf('sslmode=prefer'))).toBe(false)
    for (const mode of ['require', 'verify-full', 'no-verify'])
      expect(await connect(settingsOf(`sslmode=${mode}`))).toBe(
        'DATABASE_URL: sslmode wants TLS, which the server does not speak',
      )
  })
})
