import pg from 'pg'
import { ConfigError } from '../../platform/config.ts'
import { cloneDatabase, type TestDatabase } from '../support/database.ts'
import {
  type Answer,
  call,
  createScriptedSession,
  createSession,
  type Json,
  listEvents,
  waitFor,
} from '../support/http.ts'
import { type Pooler, startPooler, whyNoPooler } from '../support/pooler.ts'
import { message, SCHEDULES } from '../support/schedules.ts'
import { startService, type TestService } from '../support/service.ts'
import { openStream } from '../support/stream.ts'
import { post } from '../support/turns.ts'

const why = whyNoPooler()
const describeWithPooler = why === undefined ? describe : describe.skip
const SESSIONS = 30
const CALLS = 300
/** Changes a file, a database and a value. */
const STEPS = [
  { tool_calls: [{ name: 'bash', arguments: { command: 'echo one > a.txt && cat a.txt' } }] },
  {
    tool_calls: [
      { name: 'sql_execute', arguments: { database: 'd', sql: 'CREATE TABLE t (a); INSERT INTO t VALUES (1)' } },
    ],
  },
  { text: 'done' },
]

let database: TestDatabase
let pooler: Pooler
let service: TestService

describeWithPooler(
  `a pooler in transaction mode with 5 connections${why === undefined ? '' : ` (skipped: ${why})`}`,
  () => {
    beforeAll(async () => {
      database = await cloneDatabase()
      pooler = await startPooler(database.url)
      const environment = {
        DATABASE_URL: pooler.url,
        DATABASE_POOLER: 'transaction',
        DATABASE_POOL_SIZE: '20',
        DATABASE_MIGRATION_URL: database.url,
      }
      service = await startService({ environment })
    })
    afterAll(async () => {
      await service.stop()
      await pooler.stop()
      await database.drop()
    })

    it('serves turns with files and databases, and their streams, at once', async () => {
      const ids = await Promise.all(
        Array.from({ length: SESSIONS }, () =>
          createScriptedSession(service.url, STEPS, {
            capabilities: [{ ref: 'virtual_bash' }, { ref: 'session_sql_database' }],
          }),
        ),
      )
      const streams = await Promise.all(ids.map((id) => openStream(service.url, `/v1/sessions/${id}/sse`)))
      const answers = await Promise.all(ids.map((id) => post(service.url, id, 'Go', {}, '?wait=100')))
      expect(answers.map(({ body }) => body.turn?.status)).toEqual(ids.map(() => 'completed'))
      for (const [index, id] of ids.entries()) {
        const recorded = await listEvents(service.url, id, '?limit=1000')
        expect(recorded.filter(({ data }) => data.error)).toEqual([])
        await waitFor(async () => (streams[index]?.events().length ?? 0) >= recorded.length, 'the events')
        expect(streams[index]?.events().map((event) => event.id)).toEqual(recorded.map((event) => event.id))
        streams[index]?.close()
        const file = await call(service.url, 'GET', `/v1/sessions/${id}/fs/a.txt`)
        expect(file.body).toMatchObject({ content: 'one\n' })
      }
    })

    it('answers more requests than it has room for, or says that it is busy', async () => {
      const answers: Answer[] = await Promise.all(
        Array.from({ length: CALLS }, (_, index) =>
          index % 3 === 0
            ? call(service.url, 'POST', '/v1/sessions', {})
            : call(service.url, 'GET', index % 3 === 1 ? '/v1/sessions?limit=20' : '/v1/agents'),
        ),
      )
      const refused = answers.filter(({ status }) => status >= 400)
      expect(refused.filter(({ status, body }) => status !== 503 || !/try again/.test(body.error?.message))).toEqual([])
      expect(answers.length - refused.length).toBeGreaterThan(CALLS / 2)
    })

    it('runs a schedule, and gives times in UTC', async () => {
      const session_id = await createSession(service.url)
      const target = message({ session_id, message: 'Hello' })
      const created = await call(service.url, 'POST', SCHEDULES, {
        name: 'soon',
        cron_expression: '*/10 * * * * *',
        target,
      })
      expect(created.status).toBe(201)
      const path = `${SCHEDULES}/${created.body.id}`
      const run = await waitFor(async () => {
        const { body } = await call(service.url, 'GET', `${path}/executions`)
        return body.data.find(({ status }: Json) => status === 'completed')
      }, 'an execution')
      await call(service.url, 'DELETE', path)
      expect(Math.abs(Date.parse(run.scheduled_at) - Date.now())).toBeLessThan(60_000)
      const { db } = service.platform.deps
      expect(await db.$queryRaw`SELECT current_setting('TimeZone') AS zone`).toEqual([{ zone: 'UTC' }])
    })

    it('has a sentence for a service that does not know of it', async () => {
      const failure = async (settings: Record<string, string>) => {
        const other = await startPooler(database.url, settings)
        const error = await startService({ environment: { DATABASE_URL: other.url }, worker: false }).then(
          ({ stop }) => stop(),
          (thrown: unknown) => thrown,
        )
        await other.stop()
        expect(error).toBeInstanceOf(ConfigError)
        return (error as ConfigError).message
      }
      expect(await failure({})).toBe(
        'DATABASE_URL: unsupported startup parameter: statement_timeout; a pooler in transaction mode needs DATABASE_POOLER=transaction',
      )
    })

    it('leaves no statement with a name', async () => {
      const client = new pg.Client({ connectionString: pooler.url })
      await client.connect()
      for (let call = 1; call <= 10; call++)
        expect((await client.query('SELECT name FROM pg_prepared_statements')).rows).toEqual([])
      await client.end()
    })
  },
)
