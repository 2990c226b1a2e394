import { execFileSync } from 'node:child_process'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { freePorts } from '../../dev/services/index.ts'
import { findPostgresUser } from '../../dev/services/postgres-user.ts'
import { startProcess } from '../../dev/services/process.ts'

/** Reason for which PgBouncer cannot be started; undefined if it is there. */
export function whyNoPooler(): string | undefined {
  try {
    execFileSync('pgbouncer', ['--version'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'there is no pgbouncer'
  }
}

export type Pooler = {
  /** Address of the same database through the pooler. */
  url: string
  stop(): Promise<void>
}

/** Starts PgBouncer in transaction mode with few connections to the server of a database. */
export async function startPooler(databaseUrl: string, settings: Record<string, string> = {}): Promise<Pooler> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'agent-sessions-pooler-'))
  const [port = 0] = await freePorts(1)
  const { hostname, port: serverPort, username, password, pathname } = new URL(databaseUrl)
  const server = `host=${hostname} port=${serverPort} user=${username} password=${password}`
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    pool_mode: 'transaction',
    default_pool_size: 5,
    max_client_conn: 200,
    ...settings,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`)
  const file = path.join(dataDir, 'pgbouncer.ini')
  await writeFile(file, ['[databases]', `* = ${server}`, '[pgbouncer]', ...lines, ''].join('\n'))
  const user = await findPostgresUser(dataDir)
  if (user !== undefined) for (const place of [dataDir, file]) await chown(place, user.uid, user.gid)
  const url = `postgres://${username}@127.0.0.1:${port}${pathname}`
  const pooler = await startProcess({
    name: 'pgbouncer',
    command: 'pgbouncer',
    args: [file],
    ...(user && { user }),
    dataDir,
    url,
    stopSignal: 'SIGINT',
    log: () => {},
    probe: async () => {
      const client = new pg.Client({ connectionString: url })
      client.on('error', () => {})
      await client.connect()
      await client.query('SELECT 1')
      await client.end()
    },
  })
  return {
    url,
    stop: async () => {
      await pooler.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
