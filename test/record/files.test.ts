import { setTimeout as sleep } from 'node:timers/promises'
import type { Deps } from '../../domain/deps.ts'
import { newUuid } from '../../domain/kit/ids.ts'
import { type SessionScope, WriterLost } from '../../domain/kit/session-scope.ts'
import { changeFiles } from '../../domain/session-data/files/change.ts'
import type { FileChange } from '../../domain/session-data/files/file-change.ts'
import { listFiles } from '../../domain/session-data/files/list.ts'
import { openFile } from '../../domain/session-data/files/read.ts'
import { call, createSession, waitFor } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
let deps: Deps
let id: string
let scope: SessionScope
beforeAll(async () => {
  service = await startService({ worker: false })
  // As in many processes, each with one change.
  deps = { ...service.platform.deps, fileMutex: (_session, work) => work() }
})
beforeEach(async () => {
  id = await createSession(service.url)
  const { body } = await call(service.url, 'GET', `/v1/sessions/${id}`)
  scope = { organizationId: toUuid(body.organization_id), sessionId: toUuid(id) }
})
afterAll(() => service.stop())

const write = (path: string, content: string | Buffer = path): FileChange => ({
  do: 'write',
  path,
  bytes: Buffer.from(content),
  isBase64: false,
})
const change = (...changes: FileChange[]) => changeFiles(deps, scope, changes)
const withQuotas = (files: Partial<Deps['quotas']['files']>): Deps => ({
  ...deps,
  quotas: { ...deps.quotas, files: { ...deps.quotas.files, ...files } },
})

async function paths(path = '/'): Promise<string[]> {
  const found: string[] = []
  for await (const page of listFiles(deps, scope, path, 'subtree')) found.push(...page.map((file) => file.path))
  return found
}

/** Reads a file of one character. Returns 'whole', or why it breaks off. */
async function readEnd(path: string, size: number): Promise<string> {
  const opened = await openFile(deps, scope, path)
  if (opened === 'directory') throw new Error('it is a file')
  let text = ''
  try {
    for await (const chunk of opened.chunks) text += Buffer.from(chunk).toString()
  } catch (error) {
    return String(error)
  }
  expect([new Set(text).size, text.length]).toEqual([1, size])
  return 'whole'
}

/** Expects that the totals match the files, that each content is whole, and that each parent is a directory. */
async function expectSound(): Promise<void> {
  const [row] = await deps.db.$queryRaw<object[]>`
    SELECT
      (SELECT count(*)::int FROM session_files f WHERE session_id = t.session_id) - count AS count,
      (SELECT coalesce(sum(size_bytes), 0)::int FROM session_files f WHERE session_id = t.session_id) - bytes::int AS bytes,
      (SELECT coalesce(sum(length(bytes)), 0)::int FROM session_file_chunks WHERE session_id = t.session_id) - bytes::int
        AS chunks,
      (SELECT count(*)::int FROM session_files f WHERE session_id = t.session_id AND path LIKE '/%/%' AND NOT EXISTS (
        SELECT FROM session_files p WHERE p.session_id = f.session_id AND p.is_directory
          AND p.path = regexp_replace(f.path, '/[^/]*$', ''))) AS orphans
    FROM session_file_totals t WHERE session_id = ${scope.sessionId}::uuid`
  expect(row).toEqual({ count: 0, bytes: 0, chunks: 0, orphans: 0 })
}

describe('changes of files', () => {
  it('are all made, or none of them', async () => {
    await change(write('/a'), write('/d/b'))
    const both = change(write('/c'), { do: 'move', from: '/d', to: '/e' }, { do: 'copy', from: '/nowhere', to: '/f' })
    await expect(both).rejects.toThrow('File not found')
    expect(await paths()).toEqual(['/a', '/d', '/d/b'])
    await expectSound()
  })

  it('are refused when a file is not what it was', async () => {
    await change(write('/a', 'one'))
    const [before] = await deps.fileStore.readWhole(scope.organizationId, scope.sessionId, ['/a'])
    await change({ ...write('/a', 'two'), was: before?.contentId ?? null })
    for (const stale of [
      { ...write('/a', 'three'), was: before?.contentId ?? null },
      { ...write('/a', 'three'), was: null },
      { do: 'delete', path: '/a', was: before?.contentId ?? null },
      { ...write('/b'), was: newUuid() },
      { do: 'check', path: '/a', was: before?.contentId ?? null },
      { do: 'check', path: '/a', was: null },
      { do: 'check', path: '/b', was: newUuid() },
    ] as const) {
      await expect(change(stale)).rejects.toThrow(/has been changed meanwhile/)
    }
    await change({ ...write('/b'), was: null })
    const [now] = await deps.fileStore.readWhole(scope.organizationId, scope.sessionId, ['/a'])
    await change({ do: 'check', path: '/a', was: now?.contentId ?? null }, { do: 'check', path: '/c', was: null })
    expect(await paths()).toEqual(['/a', '/b'])
    await expectSound()
  })

  it('are refused when a directory has become a file', async () => {
    await change({ do: 'make_directory', path: '/d' }, { do: 'make_directory', path: '/e' })
    await change({ do: 'delete', path: '/d', was: null }, { do: 'delete', path: '/e', was: null })
    await change(write('/e'))
    await expect(change({ do: 'delete', path: '/e', was: null })).rejects.toThrow(/has been changed meanwhile/)
    expect(await paths()).toEqual(['/e'])
  })

  it('keep the quotas, however many there are at once', async () => {
    const few = withQuotas({ maxCount: 5, maxTotalBytes: 40 })
    const tried = Array.from({ length: 20 }, (_, index) => changeFiles(few, scope, [write(`/${index}`, '12345678')]))
    const made = (await Promise.allSettled(tried)).filter(({ status }) => status === 'fulfilled')
    expect([made.length, (await paths()).length]).toEqual([5, 5])
    const [first = ''] = await paths()
    await expect(changeFiles(few, scope, [write('/more')])).rejects.toThrow(/at most 5 files and directories/)
    await expect(changeFiles(few, scope, [write(first, '123456789')])).rejects.toThrow(/at most 40 bytes/)
    await changeFiles(few, scope, [write(first, '1')])
    await changeFiles(few, scope, [{ do: 'delete', path: first }, write('/more', '1')])
    // What is too much already can still become less.
    await changeFiles(withQuotas({ maxCount: 1, maxTotalBytes: 1 }), scope, [{ do: 'delete', path: '/more' }])
    await expectSound()
  })

  it('leave no half state when moves, deletions and writes run at once', async () => {
    const verbs: ((n: number) => FileChange)[] = [
      (n) => write(`/a/b/${n % 7}`, 'x'.repeat(n)),
      (n) => ({ do: 'move', from: '/a', to: `/moved/${n}` }),
      (n) => ({ do: 'copy', from: `/a/b/${n % 7}`, to: `/a/c/${n}` }),
      () => ({ do: 'delete', path: '/moved', isRecursive: true }),
      (n) => ({ do: 'make_directory', path: `/a/b/${n % 3}/deep` }),
      (n) => ({ do: 'delete', path: `/a/b/${n % 7}` }),
    ]
    const changes = Array.from({ length: 300 }, (_, n) => changeFiles(deps, scope, [verbs[n % 6]?.(n) ?? write('/x')]))
    const ended = await Promise.allSettled(changes)
    for (const one of ended) {
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ name: 'DomainError' })
    }
    await expectSound()
    expect(ended.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(100)
  })

  it.each([
    ['of a part', 100_000, /^whole$/],
    ['of several parts', 1_500_000, /^whole$|replaced while it was read/],
  ])('%s are read whole while they are replaced, or not at all', async (_, size, ends) => {
    await change(write('/a', 'a'.repeat(size)))
    let isDone = false
    const writing = (async () => {
      for (let n = 0; n < 40; n++) await change(write('/a', 'ab'.charAt(n % 2).repeat(size)))
      isDone = true
    })()
    while (!isDone) {
      expect(await readEnd('/a', size)).toMatch(ends)
      const [whole] = await deps.fileStore.readWhole(scope.organizationId, scope.sessionId, ['/a'])
      expect([new Set(whole?.bytes).size, whole?.bytes.length]).toEqual([1, size])
    }
    await writing
    expect(await readEnd('/a', size)).toBe('whole')
  })

  it('wait for a lock for a while, and let go of their own meanwhile', async () => {
    await change(write('/a'))
    const free = Promise.withResolvers<void>()
    const holding = deps.db.$transaction(async (db) => {
      await db.$queryRaw`SELECT 1 FROM session_file_totals WHERE session_id = ${scope.sessionId}::uuid FOR UPDATE`
      await free.promise
    })
    await waitFor(async () => {
      const locks = await deps.db.$queryRaw<unknown[]>`
        SELECT 1 FROM session_file_totals WHERE session_id = ${scope.sessionId}::uuid FOR UPDATE SKIP LOCKED`
      return locks.length === 0
    }, 'the lock')
    const stopped = new AbortController()
    const given = changeFiles(deps, { ...scope, signal: stopped.signal }, [write('/b')])
    const behind = change(write('/c'))
    setTimeout(() => stopped.abort(new Error('enough')), 300)
    await expect(given).rejects.toThrow('enough')
    free.resolve()
    await Promise.all([holding, behind])
    expect(await paths()).toEqual(['/a', '/c'])
  })

  it('reach a tree of thousands of files in one statement', async () => {
    await change(...Array.from({ length: 3000 }, (_, n) => write(`/a/${n % 30}/${n}`)))
    await change({ do: 'move', from: '/a', to: '/b/c' })
    expect((await paths('/b/c')).length).toBe(3030)
    await expectSound()
    expect(await change({ do: 'delete', path: '/b', isRecursive: true })).toMatchObject({ deleted: 3032 })
    await expectSound()
  })
})

describe('a session that is deleted', () => {
  it('keeps no file, also none that is written meanwhile', async () => {
    let isDeleted = false
    const writer = async (name: string) => {
      for (let n = 0; !isDeleted || n < 5; n++) await change(write(`/${name}/${n}`)).catch(() => {})
    }
    const writers = ['a', 'b', 'c'].map(writer)
    await waitFor(async () => (await paths()).length > 10, 'files')
    expect((await call(service.url, 'DELETE', `/v1/sessions/${id}`)).status).toBe(204)
    isDeleted = true
    await Promise.all(writers)
    await expect(change(write('/late'))).rejects.toThrow('Session not found')
    const { sessionId } = scope
    await waitFor(async () => (await deps.db.deletedSession.count({ where: { id: sessionId } })) === 0, 'the clean-up')
    expect([
      await deps.db.sessionFile.count({ where: { sessionId } }),
      await deps.db.sessionFileChunk.count({ where: { sessionId } }),
      await deps.db.sessionFileTotals.count({ where: { sessionId } }),
    ]).toEqual([0, 0, 0])
  })
})

describe('a tool call', () => {
  /** Creates a turn with a step that has been claimed with a fence of 2. */
  async function claim(): Promise<{ turnId: string; step: string }> {
    const message = { message: { content: [{ type: 'text', text: 'Go' }] } }
    const { body } = await call(service.url, 'POST', `/v1/sessions/${id}/messages`, message)
    const turnId = toUuid(body.id)
    await deps.db.turnStep.create({ data: { turnId, step: 'tool:1:one', fence: 2, claims: 1 } })
    return { turnId, step: 'tool:1:one' }
  }
  const changeAs = (writer: { turnId: string; step: string; fence: number }, path: string) =>
    changeFiles(deps, { ...scope, writer }, [write(path)])

  it('changes files once, by its newest attempt, and not after the end of its turn', async () => {
    const writer = await claim()
    await expect(changeAs({ ...writer, fence: 1 }, '/old')).rejects.toEqual(new WriterLost('fenced'))
    expect(await changeAs({ ...writer, fence: 2 }, '/new')).toMatchObject({ outcome: 'changed' })
    expect(await changeAs({ ...writer, fence: 2 }, '/again')).toEqual({ outcome: 'repeated', effect: true })
    await call(service.url, 'POST', `/v1/sessions/${id}/cancel`)
    await deps.db.$executeRaw`UPDATE turn_steps SET effect = NULL WHERE turn_id = ${writer.turnId}::uuid`
    await expect(changeAs({ ...writer, fence: 2 }, '/late')).rejects.toEqual(new WriterLost('turn_ended'))
    expect(await paths()).toEqual(['/new'])
  })

  it('meets a cancellation or a deletion at any moment', async () => {
    const reasons = new Set<string>()
    for (let round = 0; round < 30; round++) {
      id = await createSession(service.url)
      scope = { ...scope, sessionId: toUuid(id) }
      const { turnId } = await claim()
      const steps = Array.from({ length: 8 }, (_, n) => `tool:2:${n}`)
      await deps.db.turnStep.createMany({ data: steps.map((step) => ({ turnId, step, fence: 2, claims: 1 })) })
      const ending: [string, string] = round % 2 === 0 ? ['DELETE', ''] : ['POST', '/cancel']
      const [ended, ...written] = await Promise.allSettled([
        sleep(round % 5).then(() => call(service.url, ending[0], `/v1/sessions/${id}${ending[1]}`)),
        ...['/a/b', '/a/c'].map((path) => change(write(path))),
        ...steps.map((step, n) => sleep(4 * n).then(() => changeAs({ turnId, step, fence: 2 }, `/tool/${n}`))),
      ])
      expect(ended).toMatchObject({ status: 'fulfilled', value: { status: ending[0] === 'DELETE' ? 204 : 200 } })
      for (const one of written) reasons.add(one.status === 'rejected' ? one.reason.message : 'written')
    }
    for (const reason of reasons)
      expect(['written', 'turn_ended', 'session_gone', 'Session not found']).toContain(reason)
    expect(reasons).toContain('turn_ended')
  })

  it('that is refused may change files later', async () => {
    const writer = { ...(await claim()), fence: 2 }
    const moving = changeFiles(deps, { ...scope, writer }, [{ do: 'move', from: '/a', to: '/b' }])
    await expect(moving).rejects.toThrow('File not found')
    expect(await changeAs(writer, '/a')).toMatchObject({ outcome: 'changed' })
  })
})
