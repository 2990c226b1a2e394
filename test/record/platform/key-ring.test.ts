import { encryptedColumns } from '../../../platform/secrets/encrypted-columns.ts'
import { keyFromBytes } from '../../../platform/secrets/encryption-key.ts'
import { readKeyRing } from '../../../platform/secrets/key-ring.ts'
import { keyIdOf } from '../../../platform/secrets/secrets.ts'
import { FULL_MODE } from '../../support/auth.ts'
import { withService } from '../../support/service.ts'
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

const open = (current?: string, ...previous: string[]) =>
  readKeyRing(
    {
      SECRETS_ENCRYPTION_KEY: current === undefined ? undefined : keyText(current),
      SECRETS_ENCRYPTION_KEY_PREVIOUS: previous.map(keyText),
    },
    database.db,
  )
const idsOf = async (ring: ReturnType<typeof open>) => {
  const { current, previous } = await ring
  return [current.id, ...previous.map(({ id }) => id)]
}
const serviceKeys = async () => (await database.db.serviceKey.findMany()).map(({ name }) => name)

describe('the keys of a process', () => {
  it('come from its environment, and no other is made', async () => {
    expect(await idsOf(open('a', 'b', 'c'))).toEqual(['a', 'b', 'c'].map((name) => keyNamed(name).id))
    expect(await serviceKeys()).toEqual([])
  })

  it("are the installation's own, made once, when none is given", async () => {
    const rings = await Promise.all([1, 2, 3].map(() => idsOf(open())))
    const own = rings[0]?.[0]
    expect(rings).toEqual(Array(3).fill([own]))
    expect(await serviceKeys()).toEqual(['secrets'])
    const { value } = await database.db.serviceKey.findUniqueOrThrow({ where: { name: 'secrets' } })
    expect(keyFromBytes(value).id).toBe(own)
  })

  it("keep the installation's own for reading when one is given later, and again when it is taken away", async () => {
    const [own] = await idsOf(open())
    expect(await idsOf(open('a'))).toEqual([keyNamed('a').id, own])
    expect(await idsOf(open(undefined, 'a'))).toEqual([own, keyNamed('a').id])
  })
})

describe('a start without the key of some secrets', () => {
  beforeEach(async () => {
    for (const [text, key] of [
      ['one', 'a'],
      ['two', 'a'],
      ['three', 'b'],
      ['four', 'c'],
    ] as const)
      await database.store(text, key)
    await database.storeInSession('of/a session', 'five', 'c')
  })

  it.each([
    ['another key', 'x', [], { a: 2, b: 1, c: 2 }],
    ['one of three', 'c', ['x'], { a: 2, b: 1 }],
    ['no key', undefined, [], { a: 2, b: 1, c: 2 }],
  ] as const)('is refused with %s, and writes nothing', async (_, current, previous, missing) => {
    const error = await open(current, ...previous).catch((caught: Error) => caught)
    expect(error).toMatchObject({ name: 'ConfigError' })
    const { message } = error as Error
    expect(message).toMatch(/^SECRETS_ENCRYPTION_KEY: [^\n]*SECRETS_ENCRYPTION_KEY_PREVIOUS[^\n]*$/)
    const counts = [...message.matchAll(/(\d+) under the key ([0-9a-f]{16})/g)].map(([, count, id]) => [id, count])
    expect(Object.fromEntries(counts)).toEqual(
      Object.fromEntries(Object.entries(missing).map(([name, count]) => [keyNamed(name).id, `${count}`])),
    )
    expect(await serviceKeys()).toEqual([])
  })

  it('is refused alike in every role, in one sentence and with exit code 1', async () => {
    const before = await database.db.llmProvider.findMany()
    const environment = { ...FULL_MODE, DATABASE_URL: database.url, SECRETS_ENCRYPTION_KEY: keyText('x'), PORT: '0' }
    for (const file of ['api/main.ts', 'worker/main.ts', 'main.ts']) {
      const { code, stdout, stderr } = await runProgram(file, environment).ended
      expect([file, code, stdout]).toEqual([file, 1, ''])
      expect(stderr).toMatch(/^The service cannot start with this environment:\nSECRETS_ENCRYPTION_KEY: [^\n]+\n$/)
      expect(stderr).not.toContain(keyText('x'))
    }
    expect(await serviceKeys()).toEqual([])
    expect(await database.db.llmProvider.findMany()).toEqual(before)
  })

  it('succeeds when they are given as previous ones, and reads all secrets', async () => {
    const environment = {
      DATABASE_URL: database.url,
      SECRETS_ENCRYPTION_KEY: keyText('x'),
      SECRETS_ENCRYPTION_KEY_PREVIOUS: ['a', 'b', 'c'].map(keyText).join(),
    }
    await withService({ worker: false, environment }, async ({ platform: { deps } }) => {
      const rows = await deps.db.llmProvider.findMany({ orderBy: { id: 'asc' } })
      const places = rows.map(({ organizationId, id }) => `llm_providers/${organizationId}/${id}/api_key`)
      const read = rows.map(({ apiKey }, index) =>
        deps.secrets.decrypt(apiKey ?? new Uint8Array(), places[index] ?? ''),
      )
      expect(read).toEqual(['one', 'two', 'three', 'four'])
      expect(keyIdOf(deps.secrets.encrypt('five', 'somewhere'))).toBe(keyNamed('x').id)
    })
  })

  it('is not prevented by bytes that are no secret', async () => {
    await database.db.llmProvider.updateMany({ data: { apiKey: Buffer.from('sk-stored-as-it-is') } })
    await database.db.sessionSecret.updateMany({ data: { value: Buffer.from('stored as it is') } })
    await open('x')
    await database.db.llmProvider.updateMany({ data: { apiKey: Buffer.of(1, 2) } })
    await open('x')
  })
})

/** Columns of bytes that are not encrypted, with the reason. */
const OTHERS: Record<string, string> = {
  'api_keys.hash': 'a hash',
  'idempotency_keys.fingerprint': 'a hash',
  'image_chunks.bytes': 'a picture, which members of the organization may read',
  'skill_files.bytes': 'files of skills, which members of the organization may read',
  'session_file_chunks.bytes': 'files of sessions, like messages',
  'session_database_pages.bytes': 'databases of sessions, like their files',
  'session_snapshots.bytes': 'earlier pages of these databases',
  'images.thumbnail': 'a picture, which members of the organization may read',
  'invitations.hash': 'a hash',
  'service_keys.value': 'keys of the installation, including the encryption key that it uses when none is given',
}

/** Types whose values cannot contain a slash, which separates the keys in a place. */
const WITHOUT_SLASH = ['uuid', 'call_secret_kind']

describe('the list of encrypted columns', () => {
  it('has every column of bytes that is not named above with a reason', async () => {
    const rows = await database.db.$queryRaw<{ name: string }[]>`
      SELECT table_name || '.' || column_name AS name FROM information_schema.columns
      WHERE table_schema = current_schema() AND data_type = 'bytea'`
    const listed = encryptedColumns.map(({ table, column }) => `${table}.${column}`)
    expect(rows.map(({ name }) => name).sort()).toEqual([...listed, ...Object.keys(OTHERS)].sort())
  })

  it.each(encryptedColumns.map((column) => [column.table, column] as const))(
    'has the primary key of %s, in which at most one column is text',
    async (table, { keys }) => {
      const rows = await database.db.$queryRaw<{ name: string; type: string }[]>`
        SELECT attname::text AS name, atttypid::regtype::text AS type FROM pg_index
        JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
        WHERE indrelid = ${table}::regclass AND indisprimary ORDER BY array_position(indkey::int2[], attnum)`
      expect(rows.map(({ name }) => name)).toEqual(keys)
      expect(rows.filter(({ type }) => !WITHOUT_SLASH.includes(type)).length).toBeLessThanOrEqual(1)
    },
  )
})
