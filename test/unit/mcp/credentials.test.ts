import { InputRequired } from '../../../domain/tools/capabilities/questions.ts'
import { createRedaction } from '../../../domain/tools/mcp/protocol/credentials.ts'
import type { HostileServer } from '../../support/hostile-mcp-server.ts'
import { callOf, closeAll, endpointOf, never, newClient, newServer } from './support.ts'

closeAll()

const KEY = 'ab"cd /secret'
const TEAM = 'blue-team-1'
const CREDENTIALS = { apiKey: KEY, headers: { 'X-Team': TEAM, 'X-Login': 'Basic dXNlcjpwYXNz', 'X-Region': 'eu-1' } }
const redact = createRedaction(CREDENTIALS)
const OBJECT = { type: 'object' }

describe('credentials', () => {
  it.each<[string, unknown, unknown]>([
    ['a key', `I got ${KEY}.`, 'I got [hidden].'],
    ['a key in an address', `https://a.example/?k=${encodeURIComponent(KEY)}`, 'https://a.example/?k=[hidden]'],
    ['a key in JSON', JSON.stringify({ key: KEY }), '{"key":"[hidden]"}'],
    ['a header', { team: TEAM }, { team: '[hidden]' }],
    ['what follows the scheme in a header', 'dXNlcjpwYXNz', '[hidden]'],
    ['the name of a field', { [TEAM]: 1 }, { '[hidden]': 1 }],
    ['many of them', [[TEAM, { a: [KEY + TEAM] }]], [['[hidden]', { a: ['[hidden][hidden]'] }]]],
    ['nothing of fewer than 8 characters', 'in eu-1', 'in eu-1'],
    ['no other value', { a: 1, b: null, c: true, d: 'x' }, { a: 1, b: null, c: true, d: 'x' }],
  ])('are hidden: %s', (_, value, expected) => {
    expect(redact(value)).toEqual(expected)
  })

  it('leave numbers as they are', () => {
    expect(createRedaction({ apiKey: '12345678', headers: {} })({ id: 12_345_678, text: 'a 12345678' })).toEqual({
      id: 12_345_678,
      text: 'a [hidden]',
    })
  })

  it('are characters, no pattern', () => {
    expect(createRedaction({ apiKey: '(.*)[a-z]+$', headers: {} })('abcdefghij (.*)[a-z]+$')).toBe(
      'abcdefghij [hidden]',
    )
  })
})

/** Everything that a user or a model may see of what a server said. */
async function shownBy(answers: HostileServer['answers']): Promise<string> {
  const server = await newServer(answers)
  const endpoint = endpointOf(server, CREDENTIALS)
  const client = newClient({ times: { asked: 50 } })
  const seen: unknown = await client.call(endpoint, callOf()).catch((error: Error) => {
    return error instanceof InputRequired ? error.questions : error.message
  })
  const { tools, leftOut } = await client.discover(endpoint, never())
  return JSON.stringify([seen, tools, leftOut])
}

const leaks = `${KEY} ${TEAM} dXNlcjpwYXNz`
const address = `https://a.example/?k=${encodeURIComponent(KEY)}&t=${TEAM}`
const elicitation = { mode: 'url', message: leaks, url: address, elicitationId: '1' }
const question = {
  message: leaks,
  requestedSchema: { ...OBJECT, properties: { [TEAM]: { type: 'string', title: leaks } } },
}

describe('what a server says', () => {
  it.each<[string, HostileServer['answers']]>([
    [
      'a result',
      {
        'tools/call': ({ reply }) =>
          reply({
            content: [
              { type: 'text', text: leaks },
              { type: leaks, mimeType: leaks },
              { type: 'image', data: 'AAAA', mimeType: leaks },
              { type: 'resource', resource: { uri: address, mimeType: leaks, text: leaks } },
              { type: 'resource', resource: { uri: address, mimeType: leaks, blob: 'AAAA' } },
              { type: 'resource_link', uri: address, name: leaks, description: leaks },
            ],
            structuredContent: { [KEY]: leaks },
          }),
      },
    ],
    [
      'a failed tool',
      { 'tools/call': ({ reply }) => reply({ isError: true, content: [{ type: 'text', text: leaks }] }) },
    ],
    [
      'a failed tool without a text',
      { 'tools/call': ({ reply }) => reply({ isError: true, content: [], structuredContent: { a: leaks } }) },
    ],
    ['an error', { 'tools/call': ({ fail }) => fail(-32_603, leaks) }],
    ['an error cut in a key', { 'tools/call': ({ fail }) => fail(-32_603, `${'x'.repeat(990)}${leaks}`) }],
    ['an error of HTTP', { 'tools/call': ({ status }) => status(400, JSON.stringify({ error: { message: leaks } })) }],
    ['visits', { 'tools/call': ({ fail }) => fail(-32_042, leaks, { elicitations: [elicitation] }) }],
    [
      'a form',
      {
        'tools/call': ({ stream }) =>
          stream()({ jsonrpc: '2.0', id: 'ask', method: 'elicitation/create', params: question }),
      },
    ],
    [
      'a list of tools',
      {
        'tools/list': ({ reply }) =>
          reply({
            tools: [
              { name: TEAM, inputSchema: OBJECT },
              { name: 'a', title: leaks, description: leaks, inputSchema: { ...OBJECT, description: leaks } },
            ],
          }),
      },
    ],
  ])('has no credentials in it: %s', async (_, answers) => {
    const shown = await shownBy(answers)
    for (const secret of ['ab\\', 'cd /', 'cd%20', 'secret', TEAM, 'dXNlc']) expect(shown).not.toContain(secret)
    expect(shown).toMatch(/hidden|…/)
  })

  it('leaves out a tool with credentials in its name', async () => {
    const server = await newServer({
      'tools/list': ({ reply }) => reply({ tools: [{ name: TEAM, inputSchema: OBJECT }] }),
    })
    const { tools, leftOut } = await newClient().discover(endpointOf(server, CREDENTIALS), never())
    expect(tools).toEqual([])
    expect(leftOut).toEqual([{ name: '[hidden]', reason: 'its name has credentials of the server in it' }])
  })
})
