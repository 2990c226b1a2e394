import type { Deps } from '../../../domain/deps.ts'
import { createSessionMutex } from '../../../domain/kit/session-mutex.ts'
import { cancelTurns } from '../../../domain/turns/control/cancel.ts'
import { reason } from '../../../domain/turns/run/reason.ts'
import { failTool, runTool } from '../../../domain/turns/run/tool.ts'
import type { TurnPlace } from '../../../domain/turns/turn-place.ts'
import { ANYBODY, withWorkflows } from '../../support/by-hand.ts'
import { call, createScriptedSession, type Json, listEvents, textMessage } from '../../support/http.ts'
import { toUuid } from '../../support/ids.ts'
import { expectSoundRecord } from '../../support/record.ts'
import { startService, type TestService } from '../../support/service.ts'
import { query } from '../../support/shared/service.ts'
import { addSkill, addSkillFile } from '../../support/skills.ts'

let service: TestService
let deps: Deps
beforeAll(async () => {
  service = await startService({ worker: false })
  const nothing = async () => {}
  deps = withWorkflows(service.platform.deps, { startTurn: nothing, resumeTurn: nothing, cancelTurn: nothing })
})
afterAll(() => service.stop())

type Call = { id: string; turn: TurnPlace; ask: (method: string, path: string, body?: unknown) => Promise<Json> }

/** Creates a turn whose model has called a tool that has not run yet, in a session with the file /a. */
async function createCall(name: string, args: object, ref = 'session_file_system'): Promise<Call> {
  const steps = [{ tool_calls: [{ id: 'one', name, arguments: args }] }, { text: 'done' }]
  const id = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'virtual_bash' }, { ref }] })
  const ask = async (method: string, path: string, body?: unknown) =>
    (await call(service.url, method, `/v1/sessions/${id}/fs${path}`, body)).body
  await ask('POST', '/a', { content: 'one\ntwo' })
  const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
  const turn = { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) }
  expect(await reason(deps, turn, 1, attempt(1))).toMatchObject({ outcome: 'act' })
  return { id, turn, ask }
}

const attempt = (fence: number, signal = new AbortController().signal) => ({ fence, signal })

/** Runs `between` at the change of an attempt: before it reaches the database, or after it has been committed. */
const withChange = (when: 'before' | 'after', between: () => Promise<void>): Deps => ({
  ...deps,
  // The attempt is in a process of its own.
  fileMutex: createSessionMutex(),
  fileStore: {
    ...deps.fileStore,
    change: async (change) => {
      if (when === 'before') await between()
      const answer = await deps.fileStore.change(change)
      if (when === 'after') await between()
      return answer
    },
  },
})

/** Runs a call in a process that dies when the change has been committed. */
async function dieAfterChange(turn: TurnPlace): Promise<void> {
  const died = new AbortController()
  const dying = withChange('after', async () => {
    died.abort(new Error('the process dies'))
    throw died.signal.reason
  })
  await expect(runTool(dying, turn, 1, 0, attempt(1, died.signal))).rejects.toThrow('the process dies')
}

async function resultsOf(id: string): Promise<Json[]> {
  const events = await listEvents(service.url, id)
  expectSoundRecord(events)
  return events.filter(({ type }) => type === 'tool.completed').map(({ data }) => data)
}
const valuesOf = async (id: string): Promise<Json[]> =>
  (await resultsOf(id)).map(({ status, result }) => [status, result && JSON.parse(result[0].text)])

const EDIT = { path: '/a', old_text: 'two', new_text: 'three' }

describe('a call whose process died after its change', () => {
  it.each<[string, object, object, string | undefined]>([
    ['write_file', { path: '/a', content: 'new' }, { path: '/a', size_bytes: 3 }, 'new'],
    ['edit_file', EDIT, { path: '/a', size_bytes: 9, line: 2 }, 'one\nthree'],
    ['delete_file', { path: '/a' }, { path: '/a', deleted: true }, undefined],
  ])('%s has changed once, and says so', async (name, args, value, content) => {
    const { id, turn, ask } = await createCall(name, args)
    await dieAfterChange(turn)
    const changed = await ask('GET', '/a')
    expect(changed.content).toBe(content)
    expect(await runTool(deps, turn, 1, 0, attempt(2))).toEqual({ outcome: 'done' })
    expect(await ask('GET', '/a')).toEqual(changed)
    expect(await valuesOf(id)).toEqual([['success', value]])
  })

  it('leaves what its user has changed since', async () => {
    const { id, turn, ask } = await createCall('edit_file', { ...EDIT, new_text: 'two and three' })
    await dieAfterChange(turn)
    await ask('PUT', '/a', { content: 'Mine: two' })
    await runTool(deps, turn, 1, 0, attempt(2))
    expect((await ask('GET', '/a')).content).toBe('Mine: two')
    expect(await valuesOf(id)).toEqual([['success', { path: '/a', size_bytes: 9, line: null }]])
  })
})

describe('a bash command that has read a file of a skill', () => {
  const error = expect.stringMatching(/^\/skills\/changing-2\/SKILL\.md has been changed meanwhile/)
  it.each<[what: string, name: string, isChanged: boolean, result: object, copy: string | undefined]>([
    ['keeps what it has written', 'changing-1', false, { status: 'success' }, 'one'],
    ['keeps nothing when that has been changed', 'changing-2', true, { status: 'error', error }, undefined],
  ])('%s', async (_what, name, isChanged, result, copy) => {
    const owner = {
      uuid: ANYBODY.organizationId,
      query: (sql: string, values?: unknown[]) => query(service.config.DATABASE_URL, sql, values),
    }
    const skill = await addSkill(owner, name, { '/SKILL.md': 'one' })
    const command = `cat /skills/${name}/SKILL.md > /copy.txt`
    const { id, turn, ask } = await createCall('bash', { command }, `skill:${skill}`)
    const changed = withChange('before', async () => {
      if (isChanged) await addSkillFile(owner, skill, '/SKILL.md', 'two')
    })
    expect(await runTool(changed, turn, 1, 0, attempt(1))).toEqual({ outcome: 'done' })
    expect((await ask('GET', '/copy.txt')).content).toBe(copy)
    expect(await resultsOf(id)).toMatchObject([result])
  })
})

describe('a call that loses Postgres', () => {
  it.each(['before', 'after'] as const)('%s its change is run again, and changes once', async (when) => {
    const { id, turn, ask } = await createCall('edit_file', EDIT)
    const lost = withChange(when, async () => {
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    })
    await expect(runTool(lost, turn, 1, 0, attempt(1))).rejects.toThrow('ECONNRESET')
    expect(await runTool(deps, turn, 1, 0, attempt(2))).toEqual({ outcome: 'done' })
    expect((await ask('GET', '/a')).content).toBe('one\nthree')
    expect(await valuesOf(id)).toEqual([['success', { path: '/a', size_bytes: 9, line: 2 }]])
  })
})

describe('an attempt that may not write any more', () => {
  it('changes nothing when a newer one has begun, which does', async () => {
    const { id, turn, ask } = await createCall('edit_file', EDIT)
    const newer = () => runTool(deps, turn, 1, 0, attempt(2)).then(() => {})
    await expect(runTool(withChange('before', newer), turn, 1, 0, attempt(1))).rejects.toThrow('newer attempt')
    expect((await ask('GET', '/a')).content).toBe('one\nthree')
    expect(await valuesOf(id)).toEqual([['success', { path: '/a', size_bytes: 9, line: 2 }]])
  })

  it('changes nothing when its turn has ended', async () => {
    const { id, turn, ask } = await createCall('edit_file', EDIT)
    const before = await ask('GET', '/a')
    const cancel = () => cancelTurns(deps, ANYBODY, toUuid(id)).then(() => {})
    expect(await runTool(withChange('before', cancel), turn, 1, 0, attempt(1))).toEqual({ outcome: 'ended' })
    expect(await ask('GET', '/a')).toEqual(before)
    expect(await resultsOf(id)).toMatchObject([{ status: 'cancelled' }])
  })
})

describe('calls of one step', () => {
  it('edit one file at once', async () => {
    const edits = ['one', 'two', 'three', 'four'].map((old_text) => ({
      name: 'edit_file',
      arguments: { path: '/b', old_text, new_text: `${old_text}!` },
    }))
    const steps = [{ tool_calls: edits.map((edit, index) => ({ id: `${index}`, ...edit })) }, { text: 'done' }]
    const id = await createScriptedSession(service.url, steps, { capabilities: [{ ref: 'session_file_system' }] })
    const files = `/v1/sessions/${id}/fs`
    await call(service.url, 'POST', `${files}/b`, { content: 'one two three four' })
    const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
    const turn = { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) }
    await reason(deps, turn, 1, attempt(1))
    await Promise.all(edits.map((_, position) => runTool(deps, turn, 1, position, attempt(1))))
    expect((await call(service.url, 'GET', `${files}/b`)).body.content).toBe('one! two! three! four!')
    expect((await resultsOf(id)).map(({ status }) => status)).toEqual(Array(4).fill('success'))
  })
})

describe('a call that took too long', () => {
  it('changes nothing once it has its result', async () => {
    const { turn, ask } = await createCall('write_file', { path: '/a', content: 'late' })
    const late = withChange('before', async () => {
      await failTool(deps, turn, 1, 0)
    })
    await expect(runTool(late, turn, 1, 0, attempt(1))).rejects.toThrow('newer attempt')
    expect((await ask('GET', '/a')).content).toBe('one\ntwo')
  })
})

describe('an edit of a file', () => {
  it('is refused when its user changes that between its reading and its writing', async () => {
    const { id, turn, ask } = await createCall('edit_file', EDIT)
    const change = () => ask('PUT', '/a', { content: 'two of mine' })
    await runTool(withChange('before', change), turn, 1, 0, attempt(1))
    expect((await ask('GET', '/a')).content).toBe('two of mine')
    const error = '/a has been changed meanwhile; read it again'
    expect(await resultsOf(id)).toMatchObject([{ status: 'error', error }])
  })
})

describe('agent_instructions', () => {
  it('has the model asked with the whole prompt or not at all, and reads one chunk of a long file', async () => {
    const capabilities = [{ ref: 'agent_instructions' }, { ref: 'session_file_system' }]
    const tool = { name: 'stat_file', arguments: { path: '/' } }
    const id = await createScriptedSession(service.url, [{ tool_calls: [tool] }, { text: 'done' }], { capabilities })
    await call(service.url, 'POST', `/v1/sessions/${id}/fs/AGENTS.md`, { content: 'Be kind.\n'.repeat(20_000) })
    const message = (await call(service.url, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))).body
    const turn = { organizationId: ANYBODY.organizationId, sessionId: toUuid(id), turnId: toUuid(message.id) }
    const before = await listEvents(service.url, id)
    const withChunks = (readPart: Deps['fileStore']['readPart']): Deps => ({
      ...deps,
      fileStore: { ...deps.fileStore, readPart },
    })
    const broken = withChunks(() => Promise.reject(new Error('the connection broke')))
    await expect(reason(broken, turn, 1, attempt(1))).rejects.toThrow('the connection broke')
    expect(await listEvents(service.url, id)).toEqual(before)
    const readPart = jest.fn(deps.fileStore.readPart)
    expect(await reason(withChunks(readPart), turn, 1, attempt(2))).toMatchObject({ outcome: 'act' })
    expect(readPart).toHaveBeenCalledTimes(1)
    const { data } = (await listEvents(service.url, id)).find(({ type }) => type === 'llm.generation')
    // Four characters each, of what is shown.
    expect(data.metadata.usage.input_tokens).toBeGreaterThan(8000)
    expect(data.metadata.usage.input_tokens).toBeLessThan(9000)
    // A tool call needs no prompt.
    expect(await runTool(broken, turn, 1, 0, attempt(1))).toEqual({ outcome: 'done' })
    expect((await resultsOf(id))[0].status).toBe('success')
  })
})

describe('a session with sample files', () => {
  const sample = { capabilities: [{ ref: 'sample_data' }] }

  it('is not there without its files, nor twice when it is created twice', async () => {
    const key = { 'Idempotency-Key': 'sample' }
    const post = () => call(service.url, 'POST', '/v1/sessions', sample, key)
    const [first, second] = await Promise.all([post(), post()])
    expect([first.status, second.status, second.body.id]).toEqual([201, 201, first.body.id])
    // As if the answer had never been kept.
    await deps.db.idempotencyKey.updateMany({ where: { key: 'sample' }, data: { answer: null } })
    await call(service.url, 'PUT', `/v1/sessions/${first.body.id}/fs/samples/README.md`, { content: 'Mine' })
    expect((await post()).status).toBe(201)
    const readme = await call(service.url, 'GET', `/v1/sessions/${first.body.id}/fs/samples/README.md`)
    expect(readme.body.content).toBe('Mine')
  })

  it('is not created when its files cannot be written', async () => {
    const before = await deps.db.session.count()
    await deps.db
      .$executeRaw`ALTER TABLE session_files ADD CONSTRAINT broken CHECK (path <> '/samples/orders.csv') NOT VALID`
    const { status } = await call(service.url, 'POST', '/v1/sessions', sample)
    await deps.db.$executeRaw`ALTER TABLE session_files DROP CONSTRAINT broken`
    expect([status, await deps.db.session.count()]).toEqual([500, before])
    expect((await call(service.url, 'POST', '/v1/sessions', sample)).status).toBe(201)
  })
})
