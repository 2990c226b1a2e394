import type { Deps } from '../../domain/deps.ts'
import { copyHistory } from '../../domain/forks/copy-history.ts'
import { forkSession } from '../../domain/forks/fork.ts'
import { NO_USER } from '../../domain/kit/actor.ts'
import { asUuid, newUuid } from '../../domain/kit/ids.ts'
import { deleteExpired } from '../../domain/upkeep/retention.ts'
import { createScriptedAgent } from '../support/agents.ts'
import { call, type Json, listEvents, textMessage } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'
import { MUTE, post } from '../support/turns.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService()
  deps = service.platform.deps
})
afterAll(() => service.stop())

const ask = async (method: string, path: string, body?: unknown): Promise<Json> => {
  const answer = await call(service.url, method, `/v1/sessions${path}`, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}
const fork = async (id: string, body: object = {}): Promise<Json> => (await ask('POST', `/${id}/fork`, body)).session
const run = async (id: string): Promise<Json> => (await ask('POST', `/${id}/messages?wait=60`, textMessage('Go'))).turn
const write = (id: string, path: string, content: string) => ask('POST', `/${id}/fs${path}`, { content })
const put = (id: string, path: string, content: string) => ask('PUT', `/${id}/fs${path}`, { content })

/** Returns all that a session keeps: contents by path, values by key, rows of its database. */
async function dataOf(id: string): Promise<Json> {
  const { data } = await ask('GET', `/${id}/fs?recursive=true`)
  const paths: string[] = data.filter((file: Json) => !file.is_directory).map((file: Json) => file.path)
  const contents = paths.map(async (path) => [path, (await ask('GET', `/${id}/fs${path}`)).content])
  const keys = (await ask('GET', `/${id}/storage/keys`)).data.map(({ key, value }: Json) => [key, value])
  const hasNotes = (await ask('GET', `/${id}/databases`)).data.length > 0
  const rows =
    hasNotes && (await ask('POST', `/${id}/databases/notes/query`, { sql: 'SELECT * FROM n ORDER BY a' })).rows
  return { files: Object.fromEntries(await Promise.all(contents)), keys: Object.fromEntries(keys), rows: rows || null }
}

const capabilities = ['session_file_system', 'session_storage', 'session_sql_database'].map((ref) => ({ ref }))
const sql = (text: string) => ({ name: 'sql_execute', arguments: { database: 'notes', sql: text } })
const file = (path: string, content: string) => ({ name: 'write_file', arguments: { path, content } })
const key = (name: string, value: string) => ({ name: 'kv_store', arguments: { operation: 'set', key: name, value } })
const STEPS = [
  {
    tool_calls: [
      file('/a', 'one'),
      file('/d/b', 'kept'),
      key('k', '1'),
      sql('CREATE TABLE n (a); INSERT INTO n VALUES (1)'),
    ],
  },
  { text: 'First' },
  {
    tool_calls: [
      file('/a', 'two'),
      { name: 'delete_file', arguments: { path: '/d', recursive: true } },
      ...[key('k', '2'), key('new', 'x'), sql('INSERT INTO n VALUES (2)')],
    ],
  },
  { text: 'Second' },
  { tool_calls: [{ name: 'secret_store', arguments: { operation: 'set', name: 's', value: 'hidden' } }] },
  { text: 'Third' },
]
const newSession = async (more: object): Promise<string> => {
  const agent_id = await createScriptedAgent(service.url, STEPS, { capabilities })
  return (await ask('POST', '', { agent_id, ...more })).id
}
const FIRST = { files: { '/a': 'one', '/d/b': 'kept' }, keys: { k: '1' }, rows: [[1]] }
const SECOND = { files: { '/a': 'two' }, keys: { k: '2', new: 'x' }, rows: [[1], [2]] }
const sweep = () => deleteExpired(deps, AbortSignal.timeout(60_000))

/** Returns with which arguments the domain makes a fork of a session. */
async function requestOf(id: string) {
  const { organizationId } = await deps.db.session.findFirstOrThrow()
  const actor = { organizationId, userId: NO_USER, apiKeyId: null, role: 'member' as const }
  return { sessionId: asUuid<'session'>(toUuid(id)), actor, attempt: { uuid: newUuid(), isFirst: false } }
}

describe('the data of a fork', () => {
  it('is as it was at the end of the turn, if the session keeps snapshots', async () => {
    const id = await newSession({ snapshots: true })
    const first = await run(id)
    await write(id, '/between', 'for the second')
    await ask('POST', `/${id}/fs/_/move`, { src_path: '/d', dst_path: '/e' })
    await ask('POST', `/${id}/fs/_/move`, { src_path: '/e', dst_path: '/d' })
    const second = await run(id)
    await put(id, '/a', 'three')
    await ask('DELETE', `/${id}/databases/notes`)
    await ask('DELETE', `/${id}/storage/keys/k`)
    await sweep()
    const atFirst = await fork(id, { at: first.id })
    expect(atFirst).toMatchObject({ snapshots: true, forked_from: { data_as_of: 'snapshot' } })
    expect(await dataOf(atFirst.id)).toEqual(FIRST)
    const atSecond = await fork(id, { at: second.id })
    const between = { '/between': 'for the second' }
    expect(await dataOf(atSecond.id)).toEqual({ ...SECOND, files: { ...SECOND.files, ...between } })
    const edited = await fork(id, { at: second.id, message: { content: 'Else' } })
    expect((await ask('GET', `/${edited.id}/fs/between`)).content).toBe('for the second')
    // A fork has snapshots of its own turns only.
    expect(
      (await fork(atSecond.id, { at: (await ask('GET', `/${atSecond.id}/turns`)).data[1].id })).forked_from,
    ).toMatchObject({
      data_as_of: 'now',
    })
    await put(atSecond.id, '/a', 'mine')
    const turn = await run(atSecond.id)
    await put(atSecond.id, '/a', 'later')
    expect((await dataOf((await fork(atSecond.id, { at: turn.id })).id)).files['/a']).toBe('mine')
    expect((await dataOf(id)).files['/a']).toBe('three')
  })

  it('is as it is now without snapshots, and each goes on by itself', async () => {
    const id = await newSession({})
    const first = await run(id)
    await run(id)
    const { id: forked, forked_from, snapshots } = await fork(id, { at: first.id })
    expect([forked_from.data_as_of, snapshots]).toEqual(['now', false])
    expect(await dataOf(forked)).toEqual(SECOND)
    await put(forked, '/a', 'mine')
    await ask('PUT', `/${forked}/storage/keys/k`, { value: 'mine' })
    await write(id, '/more', 'x')
    expect((await dataOf(id)).files).toEqual({ '/a': 'two', '/more': 'x' })
    expect(await dataOf(forked)).toMatchObject({ files: { '/a': 'mine' }, keys: { k: 'mine' } })
    const totals = await deps.db.sessionFileTotals.findMany({ where: { sessionId: toUuid(forked) } })
    expect(totals).toMatchObject([{ count: 1, bytes: 4n, spaceId: toUuid(id) }])
  })

  it('shares contents until nothing has them', async () => {
    const { id } = await ask('POST', '')
    const chunks = () => deps.db.sessionFileChunk.count({ where: { sessionId: toUuid(id) } })
    for (const name of ['a', 'b', 'c']) await write(id, `/${name}`, name.repeat(60_000))
    const { id: forked } = await fork(id)
    const { id: second } = await fork(forked)
    expect(await chunks()).toBe(6)
    await ask('DELETE', `/${id}/fs/a`)
    await put(forked, '/b', 'changed')
    await sweep()
    expect(await chunks()).toBe(7)
    await ask('DELETE', `/${id}`)
    await sweep()
    expect((await ask('GET', `/${forked}/fs/c`)).content).toBe('c'.repeat(60_000))
    expect(await chunks()).toBe(7)
    await ask('DELETE', `/${second}`)
    await sweep()
    expect(await chunks()).toBe(5)
    expect((await ask('GET', `/${forked}/tree`)).data).toMatchObject([{ forked_from: { session_id: id } }])
    await ask('DELETE', `/${forked}`)
    await sweep()
    expect([await chunks(), await deps.db.fileSpaceDue.count({ where: { spaceId: toUuid(id) } })]).toEqual([0, 0])
  })

  it('has secrets only on request', async () => {
    const id = await newSession({})
    for (const _ of [1, 2, 3]) await run(id)
    await ask('PUT', `/${id}/storage/secrets/other`, { value: 'made-up' })
    const plain = await fork(id)
    const { length } = await listEvents(service.url, id, '?types=tool.completed')
    expect(await listEvents(service.url, plain.id, '?types=tool.completed')).toHaveLength(length)
    expect((await ask('GET', `/${plain.id}/storage/secrets`)).data).toEqual([])
    const stored = await deps.db.event.findMany({ where: { sessionId: toUuid(plain.id) } })
    expect(JSON.stringify(stored)).not.toContain('secret_tokens')
    const whole = await fork(id, { secrets: true })
    expect((await ask('GET', `/${whole.id}/storage/secrets`)).data).toMatchObject([{ name: 'other' }, { name: 's' }])
    const [secret] = await deps.db.callSecret.findMany({ where: { sessionId: toUuid(whole.id) } })
    const place = ['call_secrets', secret?.sessionId, secret?.turnId, secret?.step, secret?.kind, 'value'].join('/')
    expect(deps.secrets.decrypt(secret?.value ?? Buffer.of(), place)).toContain('hidden')
  })

  it('gets its message by a repeated request, if the process dies before it is posted', async () => {
    const id = await newSession({})
    const first = await run(id)
    const { sessionId, actor, attempt } = await requestOf(id)
    const again = { at: first.id, again: true }
    const attempts = {
      ...deps.attempts,
      reserve: () => {
        throw new Error('killed')
      },
    }
    await expect(forkSession({ ...deps, attempts }, actor, sessionId, again, attempt)).rejects.toThrow('killed')
    expect(await deps.db.turn.count({ where: { sessionId: attempt.uuid } })).toBe(0)
    const repeat = () => forkSession(deps, actor, sessionId, again, attempt)
    const [{ session, message }, same] = await Promise.all([repeat(), repeat()])
    expect([toUuid(session.id), same.message]).toEqual([attempt.uuid, message])
    expect(message?.content).toEqual([{ type: 'text', text: 'Go' }])
    expect(await deps.db.turn.count({ where: { sessionId: attempt.uuid } })).toBe(1)
  })

  it('is made by a repeated request, if the process stands still before it commits', async () => {
    const id = await newSession({})
    await run(id)
    const { sessionId, actor, attempt } = await requestOf(id)
    const [copied, taken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const db = deps.db.$extends({
      query: {
        session: {
          create: async ({ args, query }) => {
            const created = await query(args)
            copied.resolve()
            await taken.promise
            return created
          },
        },
      },
    })
    const frozen = forkSession({ ...deps, db: db as unknown as Deps['db'] }, actor, sessionId, {}, attempt)
    await copied.promise
    const { session } = await forkSession(deps, actor, sessionId, {}, attempt)
    taken.resolve()
    expect(toUuid(session.id)).toBe(attempt.uuid)
    expect((await frozen).session).toEqual(session)
  })

  it('ends before a message that is accepted while its place is looked for', async () => {
    const agent_id = await createScriptedAgent(service.url, [{ text: 'First' }, MUTE])
    const { id } = await ask('POST', '', { agent_id })
    await run(id)
    const { sessionId, actor, attempt } = await requestOf(id)
    let isPosted = false
    const db = deps.db.$extends({
      query: {
        turn: {
          findFirst: async ({ args, query }) => {
            const found = await query(args)
            if (!isPosted) {
              isPosted = true
              await post(service.url, id)
            }
            return found
          },
        },
      },
    })
    await forkSession({ ...deps, db: db as unknown as Deps['db'] }, actor, sessionId, {}, attempt)
    expect(isPosted).toBe(true)
    const copied = await deps.db.turn.findMany({ where: { sessionId: attempt.uuid } })
    expect(copied).toMatchObject([{ status: 'completed' }])
    const all = { from: sessionId, to: newUuid(), upTo: 2 ** 31 - 1, withSecrets: false }
    await expect(deps.db.$transaction((tx) => copyHistory(tx, all))).rejects.toMatchObject({ kind: 'conflict' })
    await ask('POST', `/${id}/cancel`)
  })

  it('has snapshots of the latest 100 turns', async () => {
    const id = await newSession({ snapshots: true })
    const first = await run(id)
    await put(id, '/a', 'changed')
    const early = await fork(id, { at: first.id })
    expect(early.forked_from.data_as_of).toBe('snapshot')
    await ask('DELETE', `/${early.id}`)
    await sweep()
    const chunks = () => deps.db.sessionFileChunk.count({ where: { sessionId: toUuid(id) } })
    expect(await chunks()).toBe(3)
    const sequences = Array.from({ length: 100 }, (_, n) => 1000 + n)
    await deps.db.$executeRaw`
      INSERT INTO turns (id, organization_id, session_id, input_sequence, status, finished_at, deltas_deleted)
      SELECT gen_random_uuid(), organization_id, session_id, n, 'completed', now(), true
      FROM turns CROSS JOIN unnest(${sequences}::int[]) AS n WHERE session_id = ${toUuid(id)}::uuid`
    await sweep()
    expect((await fork(id, { at: first.id })).forked_from.data_as_of).toBe('now')
    expect(await deps.db.sessionSnapshot.count({ where: { sessionId: toUuid(id) } })).toBe(0)
    expect(await chunks()).toBe(2)
  })
})
