import { newUuid } from '../../domain/kit/ids.ts'
import { type Answer, call, expectError, type Json, modelId, unknownId } from '../support/http.ts'
import { addNamed } from '../support/named.ts'
import { countRows, newOrganization, type Organization } from '../support/shared/service.ts'

let api: Organization
beforeAll(async () => {
  api = await newOrganization()
})

const importAs = (text: string, type = 'text/markdown'): Promise<Answer> =>
  call(api, 'POST', '/v1/agents/import', text, { 'Content-Type': type })
const exported = (id: string): Promise<Answer> => call(api, 'GET', `/v1/agents/${id}/export`)
const tool = { type: 'client_side', name: 'ask', description: 'Asks.', parameters: { type: 'object', required: ['q'] } }
const fields = async () => ({
  name: 'Researcher',
  description: 'Finds: "things"',
  system_prompt: 'You find things.\n\n---\n\nAlways cite.',
  default_model_id: await modelId(api, 'llmsim-echo'),
  tags: ['work', 'true', '007'],
  capabilities: [{ ref: 'current_time' }, { ref: 'test_math', config: { digits: [1, null, '2'] } }],
  tools: [tool],
})
const fieldsOf = ({ name, description, system_prompt, default_model_id, tags, capabilities, tools }: Json) => ({
  name,
  description,
  system_prompt,
  default_model_id,
  tags,
  capabilities,
  tools,
})

describe('importing', () => {
  const frontMatter = async () => `---
name: Researcher
description: 'Finds: "things"'
default_model_id: ${await modelId(api, 'llmsim-echo')}
tags: [work, 'true', "007"]
capabilities:
  - current_time
  - ref: test_math
    config: {digits: [1, null, '2']}
tools:
  - {type: client_side, name: ask, description: Asks., parameters: {type: object, required: [q]}}
---

You find things.

---

Always cite.
`

  it.each<[string, () => Promise<[string, string]>]>([
    ['Markdown with front matter', async () => [await frontMatter(), 'text/markdown']],
    ['the same as plain text', async () => [await frontMatter(), 'text/plain; charset=utf-8']],
    ['JSON', async () => [JSON.stringify(await fields()), 'application/json']],
    [
      'JSON with capabilities that are ids',
      async () => [
        JSON.stringify({ ...(await fields()), capabilities: ['current_time', (await fields()).capabilities[1]] }),
        'text/plain',
      ],
    ],
    ['YAML', async () => [yamlOf(await fields()), 'application/yaml']],
    ['YAML as text', async () => [yamlOf(await fields()), 'text/plain']],
  ])('takes %s', async (_, document) => {
    const { status, body } = await importAs(...(await document()))
    expect([status, fieldsOf(body)]).toEqual([201, await fields()])
    expect(body).toMatchObject({ id: expect.stringMatching(/^agent_[0-9a-f]{32}$/), status: 'active' })
  })

  /** Renders an object as block-style YAML. JSON is valid YAML too, but the service would read it as JSON. */
  const yamlOf = (value: object) =>
    Object.entries(value)
      .map(([key, inner]) => `${key}: ${JSON.stringify(inner)}\n`)
      .join('')

  it('takes front matter with CRLF, and leaves the prompt as it is', async () => {
    const { status, body } = await importAs((await frontMatter()).replaceAll('\n', '\r\n'))
    const { system_prompt, ...others } = await fields()
    expect([status, fieldsOf(body)]).toEqual([
      201,
      { ...others, system_prompt: system_prompt.replaceAll('\n', '\r\n') },
    ])
  })

  it('takes any other text unchanged as the prompt, and names the agent after the current time', async () => {
    const text = '  You are helpful.\n- Note: be kind.\n\n'
    const { status, body } = await importAs(text, 'text/plain')
    expect([status, body.system_prompt]).toEqual([201, text])
    expect(body.name).toMatch(/^agent-20\d{6}-\d{6}$/)
  })

  it('takes a text whose type is not given', async () => {
    const body = new TextEncoder().encode('You are helpful.')
    expect((await fetch(`${api.url}/v1/agents/import`, { method: 'POST', headers: api.headers, body })).status).toBe(
      201,
    )
  })

  it('uses an unused id, and refuses it the second time', async () => {
    const id = `agent_${newUuid().replaceAll('-', '')}`
    const document = `---\nid: ${id}\nname: One\n---\nHelp.`
    expect((await importAs(document)).body.id).toBe(id)
    expectError(await importAs(document), 409, /^id: there is an agent agent_\w+ already; leave the id out/)
  })

  it.each<[string, string, RegExp]>([
    ['nothing', '', /^system_prompt: must not be empty/],
    ['blanks', ' \n\t\n', /^system_prompt: must not be empty/],
    ['front matter alone', '---\nname: A\n---\n\n', /^system_prompt: must not be empty/],
    ['front matter without an end', '---\nname: A\n', /line 1/],
    ['front matter that is not YAML', '---\nname: A\ntags: [a\n---\nHelp.', /line 3/],
    ['an alias', '---\nname: &a A\ndescription: *a\n---\nHelp.', /^line 2: anchors, aliases and tags are not allowed/],
    ['a number for a name', '---\nname: 7\n---\nHelp.', /^name: .*string/],
    ['a name that is too long', `---\nname: ${'n'.repeat(2049)}\n---\nHelp.`, /^name: must be at most 2048 bytes/],
    [
      'a model that does not exist',
      `---\ndefault_model_id: ${unknownId('model')}\n---\nHelp.`,
      /^default_model_id: there/,
    ],
    ['an unknown capability', '---\ncapabilities: [flying]\n---\nHelp.', /^capabilities: .*"flying"/],
    ['a NUL that is written as an escape', '---\nname: "a\\0"\n---\nHelp.', /^name: must not contain a NUL/],
    ['half a surrogate pair in JSON', '{"name":"\\ud800","system_prompt":"Help."}', /^name: must be well-formed/],
    ['half a surrogate pair in YAML', '---\ntags: ["\\udc00"]\n---\nHelp.', /well-formed|line 2/],
    ['a malformed script', '```llmsim\noops\n```', /^system_prompt: .*not JSON/],
    ['a NUL', 'You\0', /^The request body: must not contain a NUL/],
  ])('refuses %s', async (_, text, sentence) => {
    const before = await countRows(api, 'agents')
    expectError(await importAs(text), 400, sentence)
    expect(await countRows(api, 'agents')).toBe(before)
  })

  it('takes a prompt and a document at their limits, and refuses one byte more', async () => {
    const ofBytes = (bytes: number) => `---\nname: A\nunknown: ${'x'.repeat(bytes - 34)}\n---\nHelp me.`
    expect(ofBytes(1000)).toHaveLength(1000)
    expect((await importAs(ofBytes(3 * 1024 * 1024))).status).toBe(201)
    expectError(await importAs(ofBytes(3 * 1024 * 1024 + 1)), 413, /at most 3145728 bytes/)
    expect((await importAs('p'.repeat(1024 * 1024))).status).toBe(201)
    expectError(await importAs('p'.repeat(1024 * 1024 + 1)), 400, /^system_prompt: must be at most 1048576 bytes/)
  })

  it.each(['application/x-www-form-urlencoded', 'application/octet-stream', 'text/html'])(
    'refuses %s',
    async (type) => {
      expectError(await importAs('Help.', type), 415, /^The Content-Type must be one of text\/plain, text\/markdown/)
    },
  )

  it('refuses text that is not UTF-8', async () => {
    const body = new Uint8Array([72, 0xff, 0xfe])
    const headers = { ...api.headers, 'Content-Type': 'text/plain' }
    const answer = await fetch(`${api.url}/v1/agents/import`, { method: 'POST', headers, body })
    expect([answer.status, ((await answer.json()) as Json).error]).toEqual([
      400,
      expect.stringMatching(/not valid UTF-8/),
    ])
  })
})

describe('exporting', () => {
  it('is an attachment of Markdown that is pleasant to read', async () => {
    const { body: agent } = await call(api, 'POST', '/v1/agents', {
      ...(await fields()),
      name: 'Dr. Émile & Söhne',
    })
    const { status, body, headers } = await exported(agent.id)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/markdown; charset=utf-8')
    expect(headers.get('content-disposition')).toBe('attachment; filename="dr-emile-sohne.md"')
    expect(body).toMatch(/^---\nname: Dr\. Émile & Söhne\n/)
    expect(body.endsWith('\n---\n\nYou find things.\n\n---\n\nAlways cite.\n')).toBe(true)
  })

  it.each<[string, object]>([
    ['an ordinary agent', {}],
    [
      'an agent with nothing',
      { description: undefined, default_model_id: undefined, tags: [], capabilities: [], tools: [] },
    ],
    [
      'an agent with odd text',
      { system_prompt: '\r\n --- \u2028', description: '\u0085\ufeff---\n#', tags: ['', '~', '🦉'] },
    ],
  ])('exports what an import reads back unchanged: %s', async (_, more) => {
    const { body: agent } = await call(api, 'POST', '/v1/agents', { ...(await fields()), ...more })
    const again = await importAs((await exported(agent.id)).body)
    expect([again.status, fieldsOf(again.body)]).toEqual([201, fieldsOf(agent)])
    expect((await exported(again.body.id)).body).toBe((await exported(agent.id)).body)
  })

  it('marks what is missing, so that an import keeps it', async () => {
    const named = await addNamed(api)
    const capabilities = [{ ref: 'noop' }, ...named.capabilities]
    const more = { default_model_id: named.model, capabilities }
    const { body: agent } = await call(api, 'POST', '/v1/agents', { ...(await fields()), ...more })
    await named.remove()
    const document = (await exported(agent.id)).body
    const again = await importAs(document)
    const shown = { ...fieldsOf(agent), capabilities: [{ ref: 'noop' }, ...named.missing] }
    expect([again.status, again.body.missing_model, fieldsOf(again.body)]).toEqual([201, true, shown])
    const answer = { ...again.body, id: undefined }
    expect((await importAs(JSON.stringify(answer), 'application/json')).status).toBe(201)
    expectError(await importAs(document.replace('missing_model: true\n', '')), 400, /^default_model_id: there is no/)
    expectError(await importAs(document.replace('missing: true', 'missing: false')), 400, /^capabilities: there is no/)
  })

  it('finds archived agents, but none that do not exist', async () => {
    const { body: agent } = await call(api, 'POST', '/v1/agents', await fields())
    await call(api, 'DELETE', `/v1/agents/${agent.id}`)
    expect((await exported(agent.id)).status).toBe(200)
    expectError(await exported(unknownId('agent')), 404, 'Agent not found')
    expectError(await exported('agent_1'), 400, /^agent_id: /)
  })
})
