import { sharedKey } from '../../../platform/postgres/postgres.ts'
import { keyFromBytes } from '../../../platform/secrets/encryption-key.ts'
import { findKeys } from '../../../platform/secrets/key-ring.ts'
import { reencrypt } from '../../../platform/secrets/reencrypt.ts'
import { waitFor } from '../../support/http.ts'
import {
  createSecretsDatabase,
  keyNamed,
  keyText,
  runProgram,
  type SecretsDatabase,
} from '../../support/stored-secrets.ts'

let database: SecretsDatabase
beforeEach(async () => {
  database = await createSecretsDatabase()
})
afterEach(() => database.drop())

const ringOf = (current: string, ...previous: string[]) => ({
  current: keyNamed(current),
  previous: previous.map(keyNamed),
})
const storeAll = async (texts: string[], key: string) => {
  const ids: string[] = []
  for (const text of texts) ids.push(await database.store(text, key))
  return ids
}
const texts = (count: number) => Array.from({ length: count }, (_, index) => `key ${index}`)
/** Names of a session's secrets. Places and pages are made of them. */
const NAMES = ['a', 'a/b', 'É 🗝', '\\', "'; --"]
const NONE = { reencrypted: 0, current: 0, changed: 0, unreadable: new Map() }

/** Runs the command with the key `b`, after `a`. */
const runCommand = (more: Record<string, string> = {}) =>
  runProgram('deploy/reencrypt.ts', {
    DATABASE_URL: database.url,
    SECRETS_ENCRYPTION_KEY: keyText('b'),
    SECRETS_ENCRYPTION_KEY_PREVIOUS: keyText('a'),
    ...more,
  })

/** Runs `work` while another transaction has changed the row and not ended, and then ends that with `end`. */
async function whileLocked(id: string, end: 'COMMIT' | 'ROLLBACK', work: () => Promise<void>): Promise<void> {
  const rollback = new Error('rolled back on purpose')
  const change = database.db.$transaction(
    async (tx) => {
      await tx.$executeRaw`UPDATE llm_providers SET api_key = '\\x00'::bytea WHERE id = ${id}::uuid`
      await work()
      if (end === 'ROLLBACK') throw rollback
    },
    { timeout: 30_000 },
  )
  await change.catch((error: unknown) => {
    if (error !== rollback) throw error
  })
}

/** Waits until a statement waits for a lock in the database. */
const somebodyWaits = () =>
  waitFor(async () => {
    const rows = await database.db.$queryRaw<unknown[]>`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
    return rows.length > 0
  }, 'a statement to wait for a lock')

describe('re-encrypting', () => {
  it('moves the secrets of previous keys to the current one, batch by batch, and has nothing to do then', async () => {
    await storeAll(['one', 'two'], 'b')
    await storeAll(texts(7), 'a')
    await storeAll(['last'], 'c')
    for (const name of NAMES) await database.storeInSession(name, `secret of ${name}`, 'a')
    expect(await reencrypt(database.db, ringOf('b', 'a', 'c'), 3)).toEqual({ ...NONE, reencrypted: 13, current: 2 })
    expect(await database.readAll('b')).toEqual(['one', 'two', ...texts(7), 'last'])
    for (const name of NAMES) expect(await database.readInSession(name, 'b')).toBe(`secret of ${name}`)
    expect(await reencrypt(database.db, ringOf('b'), 3)).toEqual({ ...NONE, current: 15 })
  })

  it('moves the secrets of the key that the installation made for itself', async () => {
    const own = keyFromBytes(await sharedKey(database.db, 'secrets'))
    const settings = { SECRETS_ENCRYPTION_KEY: keyText('a'), SECRETS_ENCRYPTION_KEY_PREVIOUS: [] }
    await storeAll(['one'], 'a')
    await reencrypt(database.db, { current: own, previous: [keyNamed('a')] })
    const { current, previous } = await findKeys(settings, database.db)
    expect([current?.id, ...previous.map(({ id }) => id)]).toEqual([keyNamed('a').id, own.id])
    expect(await reencrypt(database.db, { current: current ?? own, previous })).toMatchObject({ reencrypted: 1 })
    expect(await database.readAll('a')).toEqual(['one'])
  })

  it('reads one value at once, however large they are', async () => {
    await storeAll(texts(3), 'a')
    const sizes: number[] = []
    const counting = new Proxy(database.db, {
      get: (target, name) => {
        if (name !== '$queryRawUnsafe') return Reflect.get(target, name)
        return async (sql: string, ...values: unknown[]) => {
          const rows = await target.$queryRawUnsafe<object[]>(sql, ...values)
          sizes.push(rows.filter((row) => Object.values(row).some((value) => value instanceof Uint8Array)).length)
          return rows
        }
      },
    })
    expect(await reencrypt(counting, ringOf('b', 'a'))).toMatchObject({ reencrypted: 3 })
    expect(Math.max(...sizes)).toBe(1)
  })

  it('leaves other columns of a row as they are', async () => {
    await storeAll(['one'], 'a')
    const read = () => database.db.llmProvider.findMany({ omit: { apiKey: true } })
    const before = await read()
    await reencrypt(database.db, ringOf('b', 'a'))
    expect(await read()).toEqual(before)
  })

  it('reports what it cannot read by table and key, and goes on with the rest', async () => {
    const [first = '', second = '', third = ''] = await storeAll(['one', 'two', 'three', 'four', 'five'], 'a')
    await storeAll(['lost', 'lost too'], 'z')
    const { apiKey } = await database.db.llmProvider.findFirstOrThrow({ where: { id: first } })
    // Moved to another row, and no secret at all.
    await database.db.llmProvider.updateMany({ where: { id: second }, data: { apiKey } })
    await database.db.llmProvider.updateMany({ where: { id: third }, data: { apiKey: Buffer.from('sk-plain') } })
    const { unreadable, ...counts } = await reencrypt(database.db, ringOf('b', 'a'), 2)
    expect(counts).toEqual({ reencrypted: 3, current: 0, changed: 0 })
    const reports = [...unreadable].map(([sentence, count]) => `${count} ${sentence}`).sort()
    expect(reports).toEqual([
      expect.stringMatching(`^1 llm_providers, key ${keyNamed('a').id}: .* was changed or moved`),
      expect.stringMatching('^1 llm_providers, key unknown: .* in a form that this release does not know'),
      expect.stringMatching(`^2 llm_providers, key ${keyNamed('z').id}: .*SECRETS_ENCRYPTION_KEY_PREVIOUS`),
    ])
  })

  it.each([
    ['a change', 'COMMIT', { reencrypted: 2, changed: 1 }],
    ['no change after all', 'ROLLBACK', { reencrypted: 3, changed: 0 }],
  ] as const)('does not overwrite %s of another process', async (_, end, counts) => {
    const [, id = ''] = await storeAll(['one', 'two', 'three'], 'a')
    let run: Promise<unknown> = Promise.resolve()
    await whileLocked(id, end, async () => {
      run = reencrypt(database.db, ringOf('b', 'a'))
      await somebodyWaits()
    })
    expect(await run).toEqual({ ...NONE, ...counts })
    const { apiKey } = await database.db.llmProvider.findFirstOrThrow({ where: { id } })
    expect(apiKey?.length === 1).toBe(end === 'COMMIT')
  })
})

describe('npm run reencrypt', () => {
  it('can be killed at any moment and repeated', async () => {
    const [, , id = ''] = await storeAll(texts(5), 'a')
    await whileLocked(id, 'ROLLBACK', async () => {
      const command = runCommand()
      await somebodyWaits()
      command.kill()
      expect(await command.ended).toMatchObject({ signal: 'SIGKILL' })
    })
    const { code, stdout, stderr } = await runCommand().ended
    expect([code, stderr]).toEqual([0, ''])
    const [first, second] = stdout.split('\n')
    expect(first).toBe(`Encrypting all stored secrets under the key ${keyNamed('b').id}.`)
    // Postgres may still run the last statement of the killed process.
    expect(second).toMatch(/^Re-encrypted: (3. Already under that key: 2|2. Already under that key: 3).$/)
    expect(await database.readAll('b')).toEqual(texts(5))
  })

  it('ends with 1 and one line for each key that it lacks, without any content', async () => {
    await storeAll(['sk-of-a-test'], 'a')
    await storeAll(['sk-of-a-test', 'sk-of-a-test'], 'z')
    const { code, stdout, stderr } = await runCommand().ended
    expect([code, stdout]).toEqual([1, expect.stringContaining('Re-encrypted: 1. Already under that key: 0.')])
    expect(stderr).toMatch(new RegExp(`^Not readable: 2 of llm_providers, key ${keyNamed('z').id}: [^\n]+\n$`))
    for (const secret of ['sk-of', keyText('a'), keyText('b')]) expect(stdout + stderr).not.toContain(secret)
  })

  it('makes no key of its own, and says what it needs', async () => {
    await storeAll(['one'], 'a')
    const { code, stderr } = await runCommand({ SECRETS_ENCRYPTION_KEY: '' }).ended
    expect([code, stderr]).toEqual([1, expect.stringMatching(/\nSECRETS_ENCRYPTION_KEY: is needed, [^\n]+\n$/)])
    expect(await database.db.serviceKey.count()).toBe(0)
    expect(await database.readAll('a')).toEqual(['one'])
  })

  it('ends with one line when Postgres does not answer', async () => {
    const { code, stderr } = await runCommand({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }).ended
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]*\n$/)])
  })
})
