import { call, expectError, type Json } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const get = (path = '') => call(api, 'GET', `/v1/capabilities${path}`)

describe('capabilities', () => {
  it('are listed, what is there and what is coming soon', async () => {
    const { status, body } = await get()
    expect(status).toBe(200)
    const ids = (wanted: string) => body.data.filter((item: Json) => item.status === wanted).map(({ id }: Json) => id)
    expect(ids('available').sort()).toEqual([
      'agent_instructions',
      'ask_user',
      'current_time',
      // Only in tests.
      'lab',
      'noop',
      'sample_data',
      'session_file_system',
      'session_schedule',
      'session_sql_database',
      'session_storage',
      'skills',
      'stateless_todo_list',
      'test_math',
      'test_weather',
      'virtual_bash',
      'web_fetch',
    ])
    expect(ids('coming_soon')).toEqual(['research'])
  })

  it('have tools in the form in which an agent may define them', async () => {
    const { status, body } = await get('/test_math')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      id: 'test_math',
      status: 'available',
      category: 'testing',
      dependencies: [],
      features: [],
      is_mcp: false,
      is_skill: false,
      system_prompt: null,
    })
    expect(body.tool_definitions.map(({ name }: Json) => name)).toEqual(['add', 'subtract', 'multiply', 'divide'])
    expect(body.tool_definitions[0]).toEqual({
      type: 'builtin',
      name: 'add',
      display_name: 'Add',
      description: 'Adds b to a.',
      policy: 'auto',
      parameters: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
        additionalProperties: false,
      },
    })
    const agent = { name: 'A', system_prompt: 'Help.', capabilities: ['test_math'], tools: body.tool_definitions }
    expect((await call(api, 'POST', '/v1/agents', agent)).body.tools).toEqual(body.tool_definitions)
  })

  it('show their dependencies and features', async () => {
    expect((await get('/virtual_bash')).body).toMatchObject({
      dependencies: ['session_file_system'],
      tool_definitions: [{ name: 'bash' }],
    })
    const files = (await get('/session_file_system')).body
    expect(files).toMatchObject({ features: ['file_system'], system_prompt: expect.stringContaining('edit_file') })
    const names = ['read_file', 'write_file', 'edit_file', 'list_directory', 'delete_file', 'stat_file']
    expect(files.tool_definitions.map(({ name }: Json) => name)).toEqual(expect.arrayContaining(names))
    expect((await get('/sample_data')).body.dependencies).toEqual(['session_file_system'])
    // Made for a session only.
    expect((await get('/agent_instructions')).body.system_prompt).toBeNull()
    expect((await get('/session_storage')).body).toMatchObject({ features: ['secrets', 'key_value'] })
    expect((await get('/session_schedule')).body).toMatchObject({
      dependencies: ['current_time'],
      features: ['schedules'],
      tool_definitions: [{ name: 'create_schedule' }, { name: 'list_schedules' }, { name: 'delete_schedule' }],
    })
    expect((await get('/noop')).body).toMatchObject({ icon: null, tool_definitions: [] })
    expect((await get('/stateless_todo_list')).body.system_prompt).toContain('write_todos')
  })

  it('can be fetched one by one as they are listed', async () => {
    for (const item of (await get()).body.data) expect((await get(`/${item.id}`)).body).toEqual(item)
  })

  it('are 404 when they are not there', async () => {
    for (const id of ['flying', 'mcp:0193aaaa-bbbb-7ccc-8ddd-0123456789ab', 'constructor', '%20', 'x'.repeat(255)]) {
      expectError(await get(`/${id}`), 404, /^Capability not found$/)
    }
    expectError(await get(`/${'x'.repeat(256)}`), 400, /^capability_id: must be at most 255 characters/)
  })
})
