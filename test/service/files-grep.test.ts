import { call, createSession, expectError, type Json, unknownId } from '../support/http.ts'
import { newOrganization, type Organization } from '../support/shared/service.ts'

const MIB = 1024 * 1024
/** Takes minutes for each MiB of EVIL_TEXT, in any engine without backtracking: it has too many states. */
const EVIL = '(.*a.{40}b){20}$'

let api: Organization
let session: string
beforeAll(async () => {
  api = await newOrganization()
})
beforeEach(async () => {
  session = await createSession(api)
})

const write = async (path: string, content: string, more: object = {}): Promise<void> => {
  const answer = await call(api, 'POST', `/v1/sessions/${session}/fs${path}`, { content, ...more })
  expect([answer.status, answer.body.path]).toEqual([201, path])
}
const grep = (pattern: unknown, path_pattern?: unknown) =>
  call(api, 'POST', `/v1/sessions/${session}/fs/_/grep`, { pattern, path_pattern })
/** Returns what is found, as `path:line number:line`. */
const find = async (pattern: string, path_pattern?: string | null): Promise<string[]> => {
  const { status, body } = await grep(pattern, path_pattern)
  expect({ status, body }).toEqual({ status: 200, body: { data: expect.any(Array) } })
  for (const { path, matches } of body.data) expect(matches.every((match: Json) => match.path === path)).toBe(true)
  return body.data.flatMap(({ matches }: Json) =>
    matches.map(({ path, line_number, line }: Json) => `${path}:${line_number}:${line}`),
  )
}

/** Letters as good as drawn, so that an engine meets ever new states. */
function randomLetters(length: number): string {
  let state = 1
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state < 0x40000000 ? 'a' : 'b'
  }).join('')
}

describe('grep', () => {
  it('finds lines by path and number, in text of any encoding, and in no other files', async () => {
    await write('/src/b.ts', 'const a = 1\r\nlet b\r\n\r\nconst é = 2')
    await write('/src/a.ts', 'no\nmatch')
    await write('/docs/a.md', '# const\n')
    await write('/docs/base64.md', Buffer.from('const\n').toString('base64'), { encoding: 'base64' })
    await write('/binary', Buffer.from('const\0').toString('base64'), { encoding: 'base64' })
    await write('/empty', '')
    const lines = [
      '/docs/a.md:1:# const',
      '/docs/base64.md:1:const',
      '/src/b.ts:1:const a = 1',
      '/src/b.ts:4:const é = 2',
    ]
    expect(await find('const')).toEqual(lines)
    expect(await find('const', null)).toEqual(lines)
    expect(await find('(?i)CONST É', '*.ts')).toEqual(['/src/b.ts:4:const é = 2'])
    expect(await find('const', '/docs/**')).toEqual(lines.slice(0, 2))
    expect(await find('^$')).toEqual(['/src/b.ts:3:'])
    expect(await find('nothing like this')).toEqual([])
    await call(api, 'DELETE', `/v1/sessions/${session}/fs/docs?recursive=true`)
    expect(await find('const', '*.md')).toEqual([])
  })

  it('finds nothing in a session without files, and none where there is no session', async () => {
    expect(await find('x')).toEqual([])
    session = unknownId('session')
    expectError(await grep('x'), 404, 'Session not found')
  })

  it.each<[unknown, unknown, RegExp]>([
    ['(a', undefined, /^pattern: missing closing \)/],
    ['(x{1000}){1000}', undefined, /^pattern: invalid repeat count/],
    ['(a)\\1', undefined, /^pattern: invalid escape sequence/],
    ['x', '[a', /^path_pattern: \[ has no \]/],
    ['x'.repeat(1001), undefined, /^pattern: /],
    ['x', 'x'.repeat(1001), /^path_pattern: /],
    ['', undefined, /^pattern: must not be empty/],
    [undefined, undefined, /^pattern: /],
    [['x'], undefined, /^pattern: /],
    ['x', 7, /^path_pattern: /],
  ])('refuses a bad pattern (%#)', async (pattern, path_pattern, sentence) => {
    expectError(await grep(pattern, path_pattern), 400, sentence)
  })

  it('says when there is more than it returns, in number or in size', async () => {
    await write('/many', 'x\n'.repeat(10_001))
    await write('/long', `${'y'.repeat(2000)}\n`.repeat(5000))
    const many = await grep('x')
    expect([many.body.truncated, many.body.data[0].matches.length]).toEqual([true, 10_000])
    await write('/exact', 'z\n'.repeat(10_000))
    expect(await find('z')).toHaveLength(10_000)
    const { body } = await grep('y', '/long')
    expect(body.truncated).toBe(true)
    expect(body.data[0].matches[0].line).toHaveLength(1000)
    expect(JSON.stringify(body).length).toBeLessThan(4.1 * MIB)
  })
})

describe('an evil pattern', () => {
  it('that makes others backtrack is matched at once', async () => {
    await write('/a', 'a'.repeat(10 * MIB))
    const startedAt = Date.now()
    expect((await grep('(a+)+$')).body.data[0].matches).toHaveLength(1)
    expect(await find('(a+)+c')).toEqual([])
    expect(Date.now() - startedAt).toBeLessThan(20_000)
  })

  it('is refused when it takes too long, and holds up nothing else', async () => {
    await write('/a', randomLetters(2 * MIB))
    const slow = grep(EVIL)
    let isOver = false
    void slow.finally(() => {
      isOver = true
    })
    const waits: number[] = []
    while (!isOver) {
      const startedAt = Date.now()
      expect((await call(api, 'GET', '/health')).status).toBe(200)
      waits.push(Date.now() - startedAt)
    }
    expectError(await slow, 400, /^pattern: takes too long/)
    expect(waits.length).toBeGreaterThan(10)
    expect(Math.max(...waits)).toBeLessThan(2000)
  })

  it('is searched no more when its caller has gone', async () => {
    await write('/a', randomLetters(2 * MIB))
    const caller = new AbortController()
    const body = JSON.stringify({ pattern: EVIL })
    const headers = { ...api.headers, 'Content-Type': 'application/json' }
    const url = `${api.url}/v1/sessions/${session}/fs/_/grep`
    const gone = [1, 2, 3].map(() =>
      fetch(url, { method: 'POST', headers, body, signal: caller.signal }).catch(() => 0),
    )
    await call(api, 'GET', '/health')
    const leftAt = Date.now()
    setTimeout(() => caller.abort(), 500)
    expect(await Promise.all(gone)).toEqual([0, 0, 0])
    expect(await find('^c')).toEqual([])
    // Three would take 9 s of CPU time one after another, and no less by the clock.
    expect(Date.now() - leftAt).toBeLessThan(9000)
  })
})
