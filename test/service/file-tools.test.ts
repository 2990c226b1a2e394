import {
  call,
  createScriptedSession,
  createSession,
  type Json,
  modelId,
  textMessage,
  waitUntilIdle,
} from '../support/http.ts'
import { expectSoundRecord, textOf } from '../support/record.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

type ScriptedCall = [name: string, args: object]
const FILES = { capabilities: [{ ref: 'session_file_system' }] }

/** Runs a session whose model makes these calls, one with each answer. Returns its results, and what its files are. */
async function runCalls(calls: ScriptedCall[], more: object = FILES) {
  const steps = calls.map(([name, args]) => ({ tool_calls: [{ name, arguments: args }] }))
  const id = await createScriptedSession(api, [...steps, { text: 'done' }], more)
  return { id, results: await resultsOf(id), file: (path: string) => fileOf(id, path) }
}

const fileOf = async (id: string, path: string): Promise<Json> =>
  (await call(api, 'GET', `/v1/sessions/${id}/fs${path}`)).body

async function resultsOf(id: string): Promise<Json[]> {
  await call(api, 'POST', `/v1/sessions/${id}/messages`, textMessage('Go'))
  const events = await waitUntilIdle(api, id)
  expectSoundRecord(events)
  return events
    .filter(({ type }) => type === 'tool.completed')
    .map(({ data }) => (data.status === 'success' ? JSON.parse(data.result[0].text) : data.error))
}

describe('the tools of session_file_system', () => {
  it('write, read, list, edit, describe and delete the files that its user sees', async () => {
    const { results, file } = await runCalls([
      ['write_file', { path: 'notes//plan.md', content: '\ufeff# Plan\r\n\r\n- tea 🍵\r\n' }],
      ['read_file', { path: '/notes/plan.md', offset: 3 }],
      ['edit_file', { path: '/notes/plan.md', old_text: 'tea 🍵', new_text: 'coffee ☕' }],
      ['write_file', { path: '/old/deep/a.bin', content: 'AP8=', encoding: 'base64' }],
      ['list_directory', { recursive: true }],
      ['stat_file', { path: '/old' }],
      ['delete_file', { path: '/old' }],
      ['delete_file', { path: '/old', recursive: true }],
      ['list_directory', {}],
    ])
    const plan = { path: '/notes/plan.md', encoding: 'text', first_line: 3, total_lines: 3, next_offset: null }
    expect(results).toEqual([
      { path: '/notes/plan.md', size_bytes: 25 },
      { ...plan, content: '- tea 🍵\r\n', size_bytes: 25 },
      { path: '/notes/plan.md', size_bytes: 27, line: 3 },
      { path: '/old/deep/a.bin', size_bytes: 2 },
      {
        path: '/',
        entries: [
          { path: '/notes', type: 'directory' },
          { path: '/notes/plan.md', type: 'file', size_bytes: 27 },
          { path: '/old', type: 'directory' },
          { path: '/old/deep', type: 'directory' },
          { path: '/old/deep/a.bin', type: 'file', size_bytes: 2 },
        ],
        next_offset: null,
      },
      expect.objectContaining({ path: '/old', name: 'old', is_directory: true, is_readonly: false }),
      expect.stringContaining('/old is not empty'),
      { path: '/old', deleted: true },
      { path: '/', entries: [{ path: '/notes', type: 'directory' }], next_offset: null },
    ])
    expect((await file('/notes/plan.md')).content).toBe('\ufeff# Plan\r\n\r\n- coffee ☕\r\n')
    expect(await file('/old')).toEqual({ error: 'File not found', code: 'not_found' })
  })

  it('work on what its user has written, and give way to it', async () => {
    const step = (name: string, args: object) => ({ tool_calls: [{ name, arguments: args }] })
    const edit = (path: string, old_text: string) => step('edit_file', { path, old_text, new_text: '1' })
    const read = step('read_file', { path: '/a' })
    const later = [edit('/a', 'one'), read, edit('/a', 'one'), edit('/protected', 'x')]
    const script = [read, { text: 'read' }, ...later, step('write_file', { path: '/protected', content: 'y' })]
    const id = await createScriptedSession(api, [...script, { text: 'done' }], FILES)
    const write = (method: string, path: string, body: object) =>
      call(api, method, `/v1/sessions/${id}/fs${path}`, body)
    await write('POST', '/a', { content: Buffer.from('zero one').toString('base64'), encoding: 'base64' })
    await write('POST', '/protected', { content: 'x', is_readonly: true })
    expect(await resultsOf(id)).toMatchObject([{ content: 'zero one', encoding: 'text' }])
    await write('PUT', '/a', { content: 'mine: one' })
    expect((await resultsOf(id)).slice(1)).toEqual([
      '/a has changed since it was read; read it again.',
      expect.objectContaining({ content: 'mine: one' }),
      { path: '/a', size_bytes: 7, line: 1 },
      expect.stringContaining('/protected is read-only: its user has protected it.'),
      expect.stringContaining('/protected is read-only until its user'),
    ])
    expect([(await fileOf(id, '/a')).content, (await fileOf(id, '/protected')).content]).toEqual(['mine: 1', 'x'])
  })
})

describe('agent_instructions', () => {
  const scriptOf = (...steps: object[]) => `\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\`\n`

  it('puts the AGENTS.md into the prompt, as it is at each call of the model', async () => {
    const model = { default_model_id: await modelId(api, 'llmsim-script') }
    const rewritten = { path: '/AGENTS.md', content: scriptOf({}, { text: 'from the second AGENTS.md' }) }
    const capabilities = [{ ref: 'agent_instructions' }, { ref: 'session_file_system' }]
    const id = await createSession(api, { ...model, capabilities })
    const content = scriptOf({ tool_calls: [{ name: 'write_file', arguments: rewritten }] }, { text: 'from the first' })
    await call(api, 'POST', `/v1/sessions/${id}/fs/AGENTS.md`, { content })
    expect(await resultsOf(id)).toMatchObject([{ path: '/AGENTS.md' }])
    const answer = (await waitUntilIdle(api, id)).findLast(({ type }) => type === 'output.message.completed')
    expect(textOf(answer.data.message)).toBe('from the second AGENTS.md')
    // Without the capability the model has no script.
    const without = await createSession(api, { ...model, ...FILES })
    await call(api, 'POST', `/v1/sessions/${without}/fs/AGENTS.md`, { content })
    expect(await resultsOf(without)).toEqual([])
  })

  it('adds nothing to the preview of an agent', async () => {
    const body = { system_prompt: 'Help.', capabilities: [{ ref: 'agent_instructions' }] }
    const { body: preview } = await call(api, 'POST', '/v1/agents/preview', body)
    expect(preview).toEqual({ system_prompt: 'Help.', system_prompt_sha256: expect.any(String), tools: [] })
  })
})

describe('sample_data', () => {
  it.each<[string, Record<string, unknown>, object]>([
    ['the agent', { capabilities: [{ ref: 'sample_data' }] }, {}],
    ['the session', {}, { capabilities: [{ ref: 'sample_data' }] }],
  ])('gives files to a session when %s has it, with the tools for them', async (_, agent, more) => {
    const id = await createSession(api, agent, more)
    expect((await call(api, 'GET', `/v1/sessions/${id}`)).body.features).toEqual(['file_system'])
    const paths = (await fileOf(id, '/?recursive=true')).data.map(({ path }: Json) => path)
    const samples = ['/samples/README.md', '/samples/orders.csv', '/samples/products.json']
    expect(paths).toEqual(['/samples', ...samples])
    const [readme, orders, products] = await Promise.all(samples.map((path) => fileOf(id, path)))
    expect(readme).toMatchObject({ encoding: 'text', is_readonly: false, content: expect.stringMatching(/^# Sample/) })
    expect(orders.content.trim().split('\n')).toHaveLength(13)
    expect(JSON.parse(products.content)).toHaveLength(5)
  })
})
