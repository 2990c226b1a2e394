import { call, createSession, expectError, type Json, unknownId } from '../support/http.ts'
import { toUuid } from '../support/ids.ts'
import * as tools from '../support/mcp-tools.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeEach(async () => {
  api = await newOrganization()
})

const SERVERS = '/v1/mcp-servers'
const KEY = 'sk-this-is-a-key-of-a-test-0123456789'
const HEADER = 'text-of-a-test in a header'
// A reserved name: nothing answers there.
const URL = 'https://mcp.example/mcp'

const add = (more: object = {}) => call(api, 'POST', SERVERS, { name: 'Mine', url: URL, ...more })
const addServer = async (more: object = {}): Promise<string> => `${SERVERS}/${(await add(more)).body.id}`
const patch = (path: string, body: object) => call(api, 'PATCH', path, body)
const uuidOf = (path: string) => toUuid(path.slice(SERVERS.length + 1))
const untilTried = (path: string) => tools.untilTried(api, uuidOf(path))
const giveTools = (path: string, changedAt?: string) => tools.giveTools(api, uuidOf(path), changedAt)
const rowOf = async (path: string): Promise<Json> =>
  (await api.query('SELECT * FROM mcp_servers WHERE id = $1', [uuidOf(path)]))[0]

describe('MCP servers', () => {
  it('are added, listed newest first, changed and deleted', async () => {
    const first = await add({ name: ' First ', description: 'Ours', api_key: KEY, headers: { 'X-Team': HEADER } })
    expect(first).toMatchObject({
      status: 201,
      body: {
        id: expect.stringMatching(/^mcp_[0-9a-f]{32}$/),
        ...{ name: 'First', description: 'Ours', url: URL, transport_type: 'http', status: 'active' },
        ...{ api_key_set: true, headers: { 'X-Team': '***' }, tools_policy: 'accept' },
        ...{ tools_count: null, tools_discovered_at: null, tools_changed_at: null },
      },
    })
    const second = await add({ name: 'Second', url: ' HTTPS://MCP.example:443/a?team=1 ', tools_policy: 'ask' })
    expect(second.body).toMatchObject({ url: 'https://mcp.example/a?team=1', api_key_set: false, headers: {} })
    const listed = (await call(api, 'GET', SERVERS)).body.data
    expect(listed.map(({ name }: Json) => name)).toEqual(['Second', 'First'])
    const path = `${SERVERS}/${first.body.id}`
    await untilTried(path)
    const change = { name: 'Changed', description: '', status: 'disabled', tools_policy: 'ask' }
    const changed = await patch(path, change)
    expect(changed).toMatchObject({ status: 200, body: { ...change, url: URL, api_key_set: true } })
    expect((await call(api, 'GET', path)).body).toEqual(changed.body)
    const nothing = { name: null, url: null, description: null, api_key: null, headers: null, tools_policy: null }
    expect((await patch(path, nothing)).body).toEqual({ ...changed.body, updated_at: expect.any(String) })
    for (const { body } of [first, second])
      expect((await call(api, 'DELETE', `${SERVERS}/${body.id}`)).status).toBe(204)
    for (const method of ['GET', 'DELETE']) expectError(await call(api, method, path), 404, 'MCP server not found')
    expectError(await patch(path, {}), 404, 'MCP server not found')
    expectError(await call(api, 'GET', `${SERVERS}/${unknownId('provider')}`), 400, /^server_id: must be mcp_/)
  })

  it.each<[what: string, body: object, sentence: RegExp]>([
    ['an empty name', { name: ' ' }, /^name: must not be empty/],
    ['a long name', { name: 'é'.repeat(128) }, /^name: must be at most 255 bytes of UTF-8/],
    ['no address', { url: null }, /^url: /],
    ['a malformed address', { url: 'not a url' }, /^url: must be an http or https URL/],
    ['another protocol', { url: 'ws://mcp.example' }, /^url: must be an http or https URL/],
    ['a long address', { url: `https://mcp.example/${'x'.repeat(2048)}` }, /^url: must be at most 2048 bytes/],
    ['credentials in the address', { url: 'https://me:secret@mcp.example' }, /^url: .*password/],
    ['a fragment', { url: 'https://mcp.example/#' }, /^url: must have no fragment/],
    ['a loopback address', { url: 'http://127.0.0.1/mcp' }, /^url: 127\.0\.0\.1 is not on the public/],
    ['a loopback address of IPv6', { url: 'http://[::1]/mcp' }, /^url: .*not on the public/],
    ['localhost', { url: 'http://localhost:3000/mcp' }, /^url: localhost is not on the public/],
    ['the metadata service', { url: 'http://169.254.169.254/' }, /^url: .*metadata service, which is never called/],
    ['a number for an address', { url: 'http://0x7f000001/' }, /^url: .*not on the public/],
    ['a private address in IPv6', { url: 'http://[::ffff:10.0.0.1]/' }, /^url: .*not on the public/],
    ['another transport', { transport_type: 'stdio' }, /^transport_type: /],
    ['another policy', { tools_policy: 'trust' }, /^tools_policy: /],
    ['a key with a line break', { api_key: 'sk-a\nX-Evil: 1' }, /^api_key: must be printable/],
    ['a key that is a mask', { api_key: '***' }, /^api_key: must be a key; \*\*\* keeps/],
    ['a header that is a mask', { headers: { 'X-A': '***' } }, /^headers: must have a value for X-A; \*\*\* keeps/],
    ['a header with a line break', { headers: { 'X-A': 'a\nX-Evil: 1' } }, /^headers\.X-A: must be printable/],
    ['a header without a name', { headers: { '': 'a' } }, /^headers\..*is not a valid header name$/],
    ['a header with a space in its name', { headers: { 'X A': 'a' } }, /^headers\..*is not a valid header name$/],
    ['headers that differ in case', { headers: { 'X-A': '1', 'x-a': '2' } }, /^headers: must have x-a once/],
    ['the host', { headers: { Host: 'other.example' } }, /^headers: must not have Host, which the service sets$/],
    [
      'a length',
      { headers: { 'content-length': '1' } },
      /^headers: must not have content-length, which the service sets$/,
    ],
    [
      'a type',
      { headers: { 'Content-Type': 'text/plain' } },
      /^headers: must not have Content-Type, which the service sets$/,
    ],
    [
      'an encoding',
      { headers: { 'Transfer-Encoding': 'chunked' } },
      /^headers: must not have Transfer-Encoding, which the service sets$/,
    ],
    [
      'a session',
      { headers: { 'Mcp-Session-Id': '1' } },
      /^headers: must not have Mcp-Session-Id, which the service sets$/,
    ],
    [
      'two credentials',
      { api_key: KEY, headers: { authorization: 'x' } },
      /^headers: must not have Authorization beside api_key/,
    ],
    [
      '101 headers',
      { headers: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`X-${n}`, '1'])) },
      /at most 100/,
    ],
    [
      'headers that are too large together',
      { headers: Object.fromEntries(Array.from({ length: 9 }, (_, n) => [`X-${n}`, 'v'.repeat(8000)])) },
      /^headers: must be at most 65536 bytes/,
    ],
  ])('are refused with %s, and the message does not repeat a secret', async (_, body, sentence) => {
    const answer = await add(body)
    expectError(answer, 400, sentence)
    expect(JSON.stringify(answer.body)).not.toMatch(/X-Evil|me:secret|sk-/)
    const path = await addServer()
    const given = Object.entries(body).every(([, value]) => value !== null)
    if (given && !('api_key' in body && !('headers' in body))) expectError(await patch(path, body), 400, sentence)
  })

  it('have names whose tools are told apart', async () => {
    await add({ name: 'My server' })
    const other = await addServer({ name: 'Other' })
    expectError(await add({ name: 'My server' }), 409, /named "My server" already/)
    expectError(await add({ name: 'my_server' }), 409, /"My server" has the same tool names as "my_server" would have/)
    expectError(await patch(other, { name: 'MY SERVER' }), 409, /has the same tool names as "MY SERVER" would have/)
    expect((await patch(other, { name: 'OTHER' })).status).toBe(200)
    const [one, ...rest] = await Promise.all(Array.from({ length: 4 }, () => add({ name: 'At once' })))
    expect([one, ...rest].map((answer) => answer?.status).sort()).toEqual([201, 409, 409, 409])
    const elsewhere = await newOrganization()
    expect((await call(elsewhere, 'POST', SERVERS, { name: 'My server', url: URL })).status).toBe(201)
  })

  it('are at most as many as the quota, also when they are added at once', async () => {
    const columns = 'id, organization_id, name, slug, url'
    await api.query(
      `INSERT INTO mcp_servers (${columns}) SELECT gen_random_uuid(), $1, n, n, $2 FROM generate_series(1, 98) AS n`,
      [api.uuid, URL],
    )
    const answers = await Promise.all(Array.from({ length: 5 }, (_, n) => add({ name: `At once ${n}` })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409])
    expectError(await add(), 409, /has 100 MCP servers/)
  })
})

describe('the credentials of a server', () => {
  const stored = async (path: string) => (await rowOf(path)).credentials as Buffer | null

  it('are stored encrypted, and no answer has them', async () => {
    const path = await addServer({ api_key: ` ${KEY}\n`, headers: { 'X-Team': HEADER } })
    const bytes = await stored(path)
    for (const secret of [KEY, HEADER]) expect(bytes?.includes(secret)).toBe(false)
    expect(bytes?.length).toBeGreaterThan(KEY.length + HEADER.length)
    const answers = [await call(api, 'GET', path), await call(api, 'GET', SERVERS), await patch(path, { name: 'New' })]
    expect(JSON.stringify(answers)).not.toMatch(/sk-|text-of-a-test/)
    const { credentials: _, ...plain } = await rowOf(path)
    expect(JSON.stringify(plain)).not.toMatch(/sk-|text-of-a-test/)
    expect(await stored(await addServer({ name: 'Without' }))).toBeNull()
  })

  it.each<[given: object, isSet: boolean, names: string[], isSame: boolean]>([
    [{ api_key: '' }, false, ['X-A', 'X-B'], false],
    [{ api_key: '***' }, true, ['X-A', 'X-B'], true],
    [{ api_key: null }, true, ['X-A', 'X-B'], true],
    [{ api_key: 'sk-another-key-0123456789' }, true, ['X-A', 'X-B'], false],
    [{ headers: { 'X-A': '***', 'X-B': '***' } }, true, ['X-A', 'X-B'], true],
    [{ headers: { 'x-b': '***', 'X-C': 'new' } }, true, ['x-b', 'X-C'], false],
    [{ headers: {} }, true, [], false],
    [{ api_key: '', headers: {} }, false, [], false],
    [{ name: 'Other', description: 'Other', status: 'disabled' }, true, ['X-A', 'X-B'], true],
  ])('are removed, kept or replaced by PATCH with %j', async (given, isSet, names, isSame) => {
    const path = await addServer({ api_key: KEY, headers: { 'X-A': 'one', 'X-B': 'two' } })
    const before = await rowOf(path)
    const changed = await patch(path, given)
    expect(changed).toMatchObject({ status: 200, body: { api_key_set: isSet } })
    expect(Object.entries(changed.body.headers)).toEqual(names.map((name) => [name, '***']))
    const after = await rowOf(path)
    expect(after.revision).toBe(isSame ? 0 : 1)
    expect(isSame).toBe(after.credentials !== null && before.credentials.equals(after.credentials))
  })

  it('cannot be kept where there are none', async () => {
    const path = await addServer({ headers: { 'X-A': 'one' } })
    expectError(
      await patch(path, { headers: { 'X-A': '***', 'X-B': '***' } }),
      400,
      /^headers: must have a value for X-B; \*\*\* keeps/,
    )
    expect((await patch(path, { api_key: '***' })).body).toMatchObject({ api_key_set: false })
    expectError(
      await patch(path, { api_key: KEY, headers: { Authorization: 'x' } }),
      400,
      /must not have Authorization/,
    )
  })

  it('that are damaged are told, and can be set again', async () => {
    const path = await addServer({ api_key: KEY, headers: { 'X-A': 'one' } })
    await untilTried(path)
    await api.query(
      'UPDATE mcp_servers SET credentials = set_byte(credentials, 40, 1 # get_byte(credentials, 40)) WHERE id = $1',
      [uuidOf(path)],
    )
    expect((await call(api, 'GET', path)).body).toMatchObject({ api_key_set: true, headers: { 'X-A': '***' } })
    const sentence = 'The stored credentials of Mine are damaged and cannot be read; set them again'
    expectError(await patch(path, { headers: { 'X-A': '***' } }), 409, sentence)
    expectError(await patch(path, { api_key: 'sk-new-0123456789' }), 409, sentence)
    expect((await patch(path, { api_key: 'sk-new-0123456789', headers: {} })).status).toBe(200)
  })

  it.each<[what: string, given: object, body: object, field: RegExp]>([
    ['another host', { api_key: KEY }, { url: 'https://other.example/mcp' }, /^api_key: is required with/],
    ['another port', { api_key: KEY }, { url: 'https://mcp.example:444/mcp', api_key: '***' }, /^api_key: is required/],
    ['another protocol', { headers: { 'X-A': '1' } }, { url: 'http://mcp.example/mcp' }, /^headers: is required with/],
  ])('are not sent to %s', async (_, given, body, field) => {
    const path = await addServer(given)
    expectError(await patch(path, body), 400, field)
    expect((await patch(path, { ...body, api_key: 'sk-for-the-new-server', headers: {} })).status).toBe(200)
    expect((await patch(path, { url: 'https://other.example/elsewhere', api_key: '', headers: {} })).status).toBe(200)
  })
})

describe('the tools of a server', () => {
  const AT = '2026-05-06T07:08:09.123Z'

  it('are read soon after it is added, and the reason why they could not be is shown', async () => {
    const path = await addServer()
    await untilTried(path)
    const { body } = await call(api, 'GET', path)
    expect(body).toMatchObject({ tools_count: null, tools_error: expect.any(String), updated_at: body.created_at })
  })

  it('belong to its capability, under names made from its own', async () => {
    const path = await addServer({ name: 'My files' })
    await giveTools(path)
    expect((await call(api, 'GET', path)).body).toMatchObject({ tools_count: 1, tools_error: null })
    const capability = async () => (await call(api, 'GET', `/v1/capabilities/mcp:${uuidOf(path)}`)).body
    const tool = { name: 'mcp_my_files__search', display_name: 'My files: search', policy: 'auto' }
    expect(await capability()).toMatchObject({ name: 'My files', is_mcp: true, tool_definitions: [tool] })
    await patch(path, { name: 'Yours', tools_policy: 'ask' })
    const renamed = { name: 'mcp_yours__search', display_name: 'Yours: search', policy: 'requires_approval' }
    expect((await capability()).tool_definitions).toMatchObject([renamed])
    const capabilities = [{ ref: `mcp:${uuidOf(path)}` }]
    const preview = await call(api, 'POST', '/v1/agents/preview', { system_prompt: 'Help.', capabilities })
    expect(preview.body).toMatchObject({ system_prompt: 'Help.', tools: [renamed] })
  })

  it('are accepted only as they were seen', async () => {
    const path = await addServer()
    await giveTools(path, AT)
    expect((await call(api, 'GET', path)).body.tools_changed_at).toBe(AT)
    for (const seen of ['2026-05-06T07:08:09.124Z', '2026-05-06T07:08:09Z']) {
      expectError(await patch(path, { accept_tools_changed_at: seen }), 409, /^The tools have changed again/)
    }
    expectError(await patch(path, { accept_tools_changed_at: 'now' }), 400, /^accept_tools_changed_at: /)
    const accepted = await patch(path, { accept_tools_changed_at: AT })
    expect(accepted).toMatchObject({ status: 200, body: { tools_changed_at: null } })
    expect((await rowOf(path)).accepted_tools).toEqual([['search', 'new']])
    expectError(await patch(path, { accept_tools_changed_at: AT }), 409, /^The tools have changed again/)
  })

  it('are forgotten with the address, and kept with other credentials, but read again', async () => {
    const path = await addServer()
    await giveTools(path, AT)
    const keyed = await patch(path, { status: 'disabled', api_key: KEY })
    expect(keyed.body).toMatchObject({ tools_count: 1, tools_changed_at: AT })
    expect(await rowOf(path)).toMatchObject({ revision: 1, tools_expire_at: null, protocol: { any: 1 } })
    expect((await patch(path, { url: URL })).status).toBe(200)
    expect((await rowOf(path)).revision).toBe(1)
    const moved = await patch(path, { url: `${URL}/other` })
    expect(moved.body).toMatchObject({ tools_count: null, tools_changed_at: null, tools_discovered_at: null })
    const forgotten = { revision: 2, tools: null, accepted_tools: null, protocol: null, tools_expire_at: null }
    expect(await rowOf(path)).toMatchObject(forgotten)
  })

  it.each<[config: unknown]>([
    [{ tools: 'read' }],
    [{ tools: ['read', 1] }],
    [{ tool: ['read'] }],
    [['read']],
    ['read'],
  ])('are not chosen by %j, which nobody can write', async (config) => {
    const capabilities = [{ ref: 'current_time' }, { ref: `mcp:${uuidOf(await addServer())}`, config }]
    const agent = { name: 'A', system_prompt: 'Help.', capabilities }
    const ways = [
      ['/v1/agents', agent],
      ['/v1/agents/import', agent],
      ['/v1/agents/preview', { system_prompt: 'Help.', capabilities }],
      ['/v1/sessions', { capabilities }],
    ] as const
    for (const [path, body] of ways)
      expectError(await call(api, 'POST', path, body), 400, /^capabilities\.1\.config: must be \{"tools": /)
  })

  it("are offered to nobody else: another organization's ref is treated as unknown", async () => {
    const ref = `mcp:${uuidOf(await addServer())}`
    const unknown = `mcp:${toUuid(unknownId('mcp'))}`
    const elsewhere = await newOrganization()
    const ways = [
      ['POST', '/v1/agents', { name: 'A', system_prompt: 'Help.' }],
      ['POST', '/v1/agents/preview', { system_prompt: 'Help.' }],
      ['POST', '/v1/sessions', {}],
    ] as const
    for (const [method, path, body] of ways) {
      const send = async (one: string) => {
        const answer = await call(elsewhere, method, path, { ...body, capabilities: [{ ref: one }] })
        return { status: answer.status, text: JSON.stringify(answer.body).replaceAll(one, '<ref>') }
      }
      expect(await send(ref)).toEqual(await send(unknown))
      expect((await send(ref)).status).toBe(400)
    }
    expectError(await call(elsewhere, 'GET', `/v1/capabilities/${ref}`), 404, 'Capability not found')
    expect((await call(elsewhere, 'GET', '/v1/capabilities')).body.data.filter(({ is_mcp }: Json) => is_mcp)).toEqual(
      [],
    )
    expect((await call(elsewhere, 'GET', `/v1/sessions/${await createSession(elsewhere)}`)).status).toBe(200)
  })

  it('cannot be named while it is disabled', async () => {
    const path = await addServer()
    const capabilities = [{ ref: `mcp:${uuidOf(path)}` }]
    const agent = { name: 'A', system_prompt: 'Help.', capabilities }
    expect((await call(api, 'POST', '/v1/agents', agent)).status).toBe(201)
    await patch(path, { status: 'disabled' })
    expectError(await call(api, 'POST', '/v1/agents', agent), 400, /is disabled/)
    expectError(await call(api, 'GET', `/v1/capabilities/mcp:${uuidOf(path)}`), 404, 'Capability not found')
    await call(api, 'DELETE', path)
    expectError(await call(api, 'POST', '/v1/agents', agent), 400, /there is no capability/)
  })
})
