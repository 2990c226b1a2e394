import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { freePorts, type Service, startPostgres } from '../../dev/services/index.ts'
import { call, createScriptedSession, createSession, textMessage, waitFor, waitUntilIdle } from '../support/http.ts'
import { privateTemporal } from '../support/private-services.ts'
import { answerOf, expectSoundRecord, textOf, turnsOf } from '../support/record.ts'
import { startService } from '../support/service.ts'
import { callsOf, clientTool, post, postAndAsk, submit } from '../support/turns.ts'

const TEXT = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')
const RUNNING = { text: TEXT, tokens_per_second: 8 }

type Server = { postgres: Service; folder: string; stop(): Promise<void> }

async function startServer(folder: string): Promise<Server> {
  const [port = 0] = await freePorts(1)
  const postgres = await startPostgres({ dataDir: folder, port, log: () => {}, durability: 'full' })
  const stop = async () => {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { postgres, folder, stop }
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'agent-sessions-backup-'))
  // Postgres does not run as root, so another user looks into the folder.
  await promisify(execFile)('chmod', ['755', folder])
  return folder
}

/** Copies the files of a running Postgres as its manual describes for backups, which pg_basebackup does as well. */
async function backUp({ postgres, folder }: Server): Promise<string> {
  const target = await newFolder()
  const [from, to] = [path.join(folder, 'data'), path.join(target, 'data')]
  const copy = (file: string) => promisify(execFile)('cp', ['-a', path.join(from, file), path.join(to, file)])
  const client = new pg.Client({ connectionString: postgres.url })
  await client.connect()
  await client.query("SELECT pg_backup_start('test', true)")
  // Files may vanish or grow meanwhile: the log of changes mends that.
  await copy('.').catch(() => {})
  const { rows } = await client.query('SELECT labelfile FROM pg_backup_stop(false)')
  await client.end()
  await rm(path.join(to, 'postmaster.pid'), { force: true })
  await rm(path.join(to, 'pg_wal'), { recursive: true })
  await copy('pg_wal')
  const label = path.join(to, 'backup_label')
  await writeFile(label, rows[0].labelfile)
  await promisify(execFile)('chown', ['--reference', to, label])
  return target
}

it('is complete in a backup made under load: beside a new Temporal, turns go on and schedules fire', async () => {
  const server = await startServer(await newFolder())
  const temporal = privateTemporal()
  const before = await startService({ environment: { DATABASE_URL: server.postgres.url } })
  const streaming = await createScriptedSession(before.url, [RUNNING])
  const waiting = await createScriptedSession(before.url, [{ tool_calls: callsOf('a') }, { text: 'done' }], {
    tools: [clientTool('a')],
  })
  const { id: turnId } = await postAndAsk(before.url, waiting)
  const scheduled = await createSession(before.url)
  const target = { type: 'workflow', name: 'session_message', input: { session_id: scheduled, message: 'Hello' } }
  const schedule = { name: 'often', cron_expression: '*/10 * * * * *', target }
  expect((await call(before.url, 'POST', '/v1/durable/schedules', schedule)).status).toBe(201)
  const isLoaded = { while: true }
  const loaded: string[] = []
  const load = (async () => {
    while (isLoaded.while) {
      const id = await createSession(before.url)
      expect((await call(before.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).status).toBe(201)
      loaded.push(id)
    }
  })()
  await post(before.url, streaming)
  await waitFor(async () => loaded.length > 5, 'load')
  const accepted = [...loaded]
  const copied = await backUp(server)
  isLoaded.while = false
  await load
  await before.stop()
  await server.stop()

  const restored = await startServer(copied)
  const running = await temporal.start()
  const environment = { DATABASE_URL: restored.postgres.url, TEMPORAL_ADDRESS: await temporal.address() }
  const after = await startService({ environment })
  const executions = async (): Promise<number> =>
    (await after.platform.deps.db.scheduleExecution.count({ where: { status: 'completed' } })) as number
  const ranBefore = await executions()
  for (const id of [streaming, ...accepted]) {
    const events = await waitUntilIdle(after.url, id)
    expectSoundRecord(events)
    expect(turnsOf(events)).toHaveLength(1)
    if (id === streaming) expect(answerOf(events)).toBe(TEXT)
  }
  expect((await submit(after.url, waiting, [{ tool_call_id: 'a', result: 1 }])).status).toBe(200)
  const events = await waitUntilIdle(after.url, waiting)
  expectSoundRecord(events)
  const last = events.findLast(({ type }) => type === 'output.message.completed')
  expect([textOf(last.data.message), turnsOf(events)]).toEqual(['done', [turnId]])
  await waitFor(async () => (await executions()) > ranBefore + 1, 'the schedule to fire again')
  await after.stop()
  await running.stop()
  await temporal.remove()
  await restored.stop()
})
