import { newUuid, toId } from '../../domain/kit/ids.ts'
import { countOf } from '../support/counts.ts'
import { call, createSession, expectError, expectQuota, type Json, unknownId } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import { addNamed } from '../support/named.ts'
import { addOrganization, addUser } from '../support/organizations.ts'
import { createRandom } from '../support/random.ts'
import { seedsOf } from '../support/seeds.ts'
import { startService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  const shared = { description: '', category: 'test', tools: [] }
  service = await startService({
    worker: false,
    capabilities: [
      { ...shared, id: 'disk', name: 'Disk', status: 'available', dependencies: [], features: ['file_system'] },
      {
        ...shared,
        id: 'vault',
        name: 'Vault',
        status: 'available',
        dependencies: ['disk'],
        features: ['secrets', 'key_value', 'file_system'],
      },
      { ...shared, id: 'later', name: 'Later', status: 'coming_soon', dependencies: [], features: ['schedules'] },
    ],
  })
})
afterAll(() => service.stop())

const ask = (method: string, path: string, body?: unknown) => call(service.url, method, `/v1/sessions${path}`, body)
const get = async (id: string): Promise<Json> => (await ask('GET', `/${id}`)).body
const create = async (body: object = {}): Promise<Json> => (await ask('POST', '', body)).body

const ASK = { type: 'client_side', name: 'ask', description: 'Asks.', parameters: { type: 'object' } }

describe('PATCH', () => {
  it.each<[string, object]>([
    ['the title', { title: 'New' }],
    ['the tags', { tags: [] }],
    ['both', { title: '', tags: ['x', 'ÿ'] }],
    ['the capabilities', { capabilities: [{ ref: 'later' }, { ref: 'noop', config: 1 }] }],
    ['the tools', { tools: [ASK] }],
    ['the model', { model_id: 'model_01933b5a000070008000000000000103' }],
    ['nothing', {}],
    ['nothing that is null', { title: null, tags: null, capabilities: null, tools: null, model_id: null }],
  ])('changes %s and nothing else', async (_, change) => {
    const before = await create({ title: 'Old', tags: ['old'] })
    const { status, body } = await ask('PATCH', `/${before.id}`, change)
    const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== null))
    expect([status, body]).toEqual([200, { ...before, ...given, updated_at: body.updated_at }])
    expect(await get(before.id)).toEqual(body)
  })

  it('takes the model away with ""', async () => {
    const { id } = await create({ model_id: 'model_01933b5a000070008000000000000103' })
    expect((await ask('PATCH', `/${id}`, { model_id: '' })).body.model_id).toBeNull()
  })

  it('keeps what has been deleted since the session named it, and marks it', async () => {
    const named = await addNamed(service.url)
    const given = { model_id: named.model, capabilities: named.capabilities }
    const before = await create(given)
    await named.remove()
    const shown = { ...before, missing_model: true, capabilities: named.missing, features: [] }
    expect(await get(before.id)).toEqual(shown)
    expect((await ask('PATCH', `/${before.id}`, shown)).body).toEqual({ ...shown, updated_at: expect.any(String) })
    const other = await create()
    for (const change of [{ model_id: named.model }, { capabilities: named.missing }]) {
      expectError(await ask('PATCH', `/${other.id}`, change), 400, /there is no (model|capability)/)
    }
  })

  it('loses neither of two concurrent changes', async () => {
    for (let round = 0; round < 10; round++) {
      const { id } = await create({ title: 'Old', tags: ['old'] })
      await Promise.all([ask('PATCH', `/${id}`, { title: 'New' }), ask('PATCH', `/${id}`, { tags: ['new'] })])
      expect(await get(id)).toMatchObject({ title: 'New', tags: ['new'] })
    }
  })

  it.each<[string, (length: number) => object, number]>([
    ['title', (length) => ({ title: 't'.repeat(length) }), 2048],
    ['tags', (length) => ({ tags: Array(length).fill('t') }), 100],
    ['tags.0', (length) => ({ tags: ['t'.repeat(length)] }), 256],
  ])('takes %s at its limit and refuses one more', async (field, change, limit) => {
    const { id } = await create()
    expect((await ask('PATCH', `/${id}`, change(limit))).status).toBe(200)
    expectError(await ask('PATCH', `/${id}`, change(limit + 1)), 400, new RegExp(`^${field}: .*${limit}`))
  })

  it.each<[string, unknown, RegExp]>([
    ['a title that is a number', { title: 1 }, /^title: .*string/],
    ['half a surrogate pair', { title: '\udc00' }, /^title: must be well-formed Unicode/],
    ['a NUL', { tags: ['\0'] }, /^tags\.0: must not contain a NUL/],
    ['a list', [], /^The request body: .*object/],
    ['a model that does not exist', { model_id: unknownId('model') }, /^model_id: there is no model/],
    ['a malformed model id', { model_id: 'model_x' }, /^model_id: must be model_/],
    ['a capability that does not exist', { capabilities: [{ ref: 'flying' }] }, /no capability "flying"/],
    ['a tool that cannot work', { tools: [{ ...ASK, parameters: { type: 'x' } }] }, /^tools\.0\.parameters: /],
  ])('refuses %s', async (_, change, sentence) => {
    const { id } = await create()
    expectError(await ask('PATCH', `/${id}`, change), 400, sentence)
  })
})

describe('features', () => {
  it('come from the available capabilities of agent and session and their dependencies, each once', async () => {
    const agent = { capabilities: [{ ref: 'disk' }, { ref: 'later' }, { ref: 'noop' }] }
    const id = await createSession(service.url, agent, { capabilities: [{ ref: 'vault' }] })
    expect((await get(id)).features).toEqual(['file_system', 'secrets', 'key_value'])
    const alone = await create({ capabilities: [{ ref: 'vault' }] })
    expect(alone.features).toEqual(['file_system', 'secrets', 'key_value'])
  })

  it('follow the agent', async () => {
    const id = await createSession(service.url, {})
    const { agent_id } = await get(id)
    expect((await get(id)).features).toEqual([])
    await call(service.url, 'PATCH', `/v1/agents/${agent_id}`, { capabilities: [{ ref: 'disk' }] })
    expect((await get(id)).features).toEqual(['file_system'])
    const listed = (await ask('GET', `?agent_id=${agent_id}`)).body.data
    expect(listed).toEqual([await get(id)])
  })
})

describe('pinning', () => {
  it('puts a session first, and unpinning puts it back; both may be repeated', async () => {
    const agent_id = (await get(await createSession(service.url, {}))).agent_id
    const ids = [(await create({ agent_id })).id, (await create({ agent_id })).id, (await create({ agent_id })).id]
    const order = async () => {
      const { body } = await ask('GET', `?agent_id=${agent_id}&limit=3`)
      return body.data.map(({ id, is_pinned }: Json) => [ids.indexOf(id), is_pinned])
    }
    for (const _ of [1, 2]) expect(await ask('PUT', `/${ids[0]}/pin`)).toMatchObject({ status: 204, body: '' })
    expect(await get(ids[0])).toMatchObject({ is_pinned: true })
    expect((await order()).slice(0, 3)).toEqual([
      [0, true],
      [2, false],
      [1, false],
    ])
    for (const _ of [1, 2]) expect(await ask('DELETE', `/${ids[0]}/pin`)).toMatchObject({ status: 204, body: '' })
    expect((await order()).map(([index]: number[]) => index)).toEqual([2, 1, 0])
  })

  it('takes {} and an empty body with the JSON content type', async () => {
    const { id } = await create()
    for (const body of [{}, '']) expect((await ask('PUT', `/${id}/pin`, body)).status).toBe(204)
  })

  it('is the caller’s own', async () => {
    const { id } = await create()
    const { db } = service.platform.deps
    await db.sessionPin.create({ data: { userId: await addUser(db), sessionId: toUuid(id) } })
    expect((await get(id)).is_pinned).toBe(false)
    expect((await ask('DELETE', `/${id}/pin`)).status).toBe(204)
    expect(await db.sessionPin.count({ where: { sessionId: toUuid(id) } })).toBe(1)
  })

  it('ends at a thousand', async () => {
    const { db } = service.platform.deps
    const userId = '00000000-0000-0000-0000-000000000001'
    const { id } = await create()
    const pinned = await db.sessionPin.count({ where: { userId } })
    const organizationId = '00000000-0000-0000-0000-000000000001'
    const rows = Array.from({ length: 1000 - pinned }, () => ({ id: newUuid(), organizationId, harnessId: newUuid() }))
    await db.session.createMany({ data: rows })
    await db.sessionPin.createMany({ data: rows.map((row) => ({ userId, sessionId: row.id })) })
    expectQuota(await ask('PUT', `/${id}/pin`), /1000 pinned sessions, which is the limit; unpin one/)
    expect((await ask('GET', '?limit=2&offset=999')).body.data.map(({ is_pinned }: Json) => is_pinned)).toEqual([
      true,
      false,
    ])
    await db.session.deleteMany({ where: { id: { in: rows.map((row) => row.id) } } })
    expect((await ask('PUT', `/${id}/pin`)).status).toBe(204)
    await ask('DELETE', `/${id}/pin`)
  })
})

describe('a list', () => {
  /** Start of a range of creation times in which sessions share days, minutes or instants, and some stand alone. */
  const START = Date.UTC(2026, 0, 31, 23, 58)
  const STEPS_MS = [0, 1, 999, 60_000, 61_000, 3_600_000, 86_400_000, 90_000_000]

  it.each(seedsOf('sessionLists'))(
    'is what sorting all sessions gives, page by page, whatever was created, deleted and pinned (SEED=%i)',
    async (seed) => {
      const random = createRandom(seed)
      const pick = <T>(items: T[]): T => items[Math.floor(random() * items.length)] as T
      const { db } = service.platform.deps
      const organizationId = '00000000-0000-0000-0000-000000000001'
      const agents = [
        null,
        ...(await Promise.all([1, 2].map(async () => (await get(await createSession(service.url, {}))).agent_id))),
      ]
      for (let round = 0; round < countOf('sessionListRounds'); round++) {
        const rows = Array.from({ length: 1 + Math.floor(random() * 30) }, () => {
          const agent = pick(agents)
          const createdAt = new Date(START + Math.floor(random() * 5) * pick(STEPS_MS) + pick(STEPS_MS))
          return { id: newUuid(), organizationId, harnessId: newUuid(), agentId: agent && toUuid(agent), createdAt }
        })
        await db.session.createMany({ data: rows })
        const all = await db.session.findMany({ where: { organizationId }, select: { id: true } })
        const gone = all.filter(() => random() < 0.2).map(({ id }) => toId('session', id))
        for (const id of gone) expect((await ask('DELETE', `/${id}`)).status).toBe(204)
        const pinned = rows.filter(() => random() < 0.2).map(({ id }) => toId('session', id))
        for (const id of pinned) if (!gone.includes(id)) await ask('PUT', `/${id}/pin`)
        await expectSortedPages(pick(agents), Math.floor(random() * 12) + 1)
      }
      const counts = await db.$queryRaw`SELECT FROM session_counts WHERE count <= 0`
      expect(counts).toEqual([])
    },
  )

  it('finds every page on days on which clocks change, whatever the time zone of the database', async () => {
    const { db } = service.platform.deps
    const organizationId = await addOrganization(db)
    const hours = Array.from({ length: 72 }, (_, hour) => new Date(Date.UTC(2026, 2, 28, hour, 30)))
    await db.session.createMany({
      data: hours.map((createdAt) => ({ id: newUuid(), organizationId, harnessId: newUuid(), createdAt })),
    })
    const places = await db.$transaction(async (tx) => {
      await tx.$executeRaw`SET LOCAL TIME ZONE 'Europe/Berlin'`
      return tx.$queryRaw<{ count: number }[]>`
        SELECT count(before)::int AS count FROM generate_series(0, 80) AS skip CROSS JOIN LATERAL session_place(
          ${organizationId}::uuid, '00000000-0000-0000-0000-000000000000', '{}', skip)`
    })
    expect(places).toEqual([{ count: 72 }])
  })

  /** Reads the whole list page by page and compares it with the plain query for it. */
  async function expectSortedPages(agent: string | null, limit: number): Promise<void> {
    const expected = await service.platform.deps.db.$queryRaw<{ id: string }[]>`
      SELECT s.id FROM sessions s LEFT JOIN session_pins p
        ON p.session_id = s.id AND p.user_id = '00000000-0000-0000-0000-000000000001'
      WHERE organization_id = '00000000-0000-0000-0000-000000000001'
        AND (${agent && toUuid(agent)}::uuid IS NULL OR agent_id = ${agent && toUuid(agent)}::uuid)
      ORDER BY p.user_id IS NULL, s.created_at DESC, s.id DESC`
    const listed: string[] = []
    for (let offset = 0; offset <= expected.length; offset += limit) {
      const { body } = await ask('GET', `?limit=${limit}&offset=${offset}${agent ? `&agent_id=${agent}` : ''}`)
      expect([body.total, body.offset, body.limit]).toEqual([expected.length, offset, limit])
      listed.push(...body.data.map(({ id }: Json) => toUuid(id)))
    }
    expect(listed).toEqual(expected.map(({ id }) => id))
  }
})

describe('a session of another organization', () => {
  it('is not found by others', async () => {
    const { db } = service.platform.deps
    const organizationId = await addOrganization(db)
    const { id: uuid } = await db.session.create({ data: { id: newUuid(), organizationId, harnessId: newUuid() } })
    const id = toId('session', uuid)
    for (const [method, path, body] of [
      ['GET', ''],
      ['PATCH', '', { title: 'Ours' }],
      ['DELETE', ''],
      ['PUT', '/pin'],
      ['DELETE', '/pin'],
    ] as const) {
      const missing = await ask(method, `/${unknownId('session')}${path}`, body)
      const theirs = await ask(method, `/${id}${path}`, body)
      expectError(theirs, 404, 'Session not found')
      expect(theirs.body).toEqual(missing.body)
    }
    expect(await db.session.count({ where: { id: uuid, title: null } })).toBe(1)
  })
})
