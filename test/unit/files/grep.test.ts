import type { GrepAnswer } from '../../../domain/session-data/files/grep/job.ts'
import { prefetch } from '../../../domain/session-data/files/grep/prefetch.ts'
import { createGrepThreads } from '../../../domain/session-data/files/grep/threads.ts'

const MIB = 1024 * 1024
const ROOM = { matches: 10_000, bytes: MIB }
const threads = createGrepThreads()
afterAll(() => threads.close())

const choose = async (patterns: { pattern?: string; pathPattern?: string }, paths: string[]): Promise<unknown> => {
  const { pattern = 'x', pathPattern } = patterns
  const { answers } = await threads.run({ do: 'choose', patterns: { pattern, pathPattern }, paths }, 2000)
  const [answer] = answers
  return answer?.is === 'problem' ? answer.problem : answer?.is === 'chosen' ? answer.paths : answer
}
const scanFiles = (pattern: string, files: Record<string, string | Buffer>, more: object = {}, limitMs = 5000) => {
  const contents = Object.entries(files).map(([path, content]) => ({ path, bytes: Buffer.from(content) }))
  const signal = 'signal' in more && more.signal instanceof AbortSignal ? more.signal : undefined
  const room = 'room' in more ? (more.room as typeof ROOM) : ROOM
  return threads.run({ do: 'scan', pattern, files: contents, room }, limitMs, signal)
}
const scanned = (answer: GrepAnswer | undefined): GrepAnswer & { is: 'scanned' } => {
  if (answer?.is !== 'scanned') throw new Error(`was not scanned: ${JSON.stringify(answer)}`)
  return answer
}
/** Returns what is found in a text, as `line number:line`. */
const find = async (pattern: string, content: string | Buffer): Promise<string[]> =>
  scanned((await scanFiles(pattern, { '/a': content })).answers[0]).results.flatMap(({ matches }) =>
    matches.map(({ line_number, line }) => `${line_number}:${line}`),
  )

const PATHS = [
  '/a.ts',
  '/b.js',
  '/docs/a.md',
  '/docs/deep/er/b.ts',
  '/docs',
  '/src/[x].ts',
  '/src/ä,b{}*?.txt',
  '/x\ny.ts',
]

describe('a path pattern', () => {
  it.each<[string, (string | number)[]]>([
    ['*.ts', ['/a.ts', '/docs/deep/er/b.ts', '/src/[x].ts', '/x\ny.ts']],
    ['?.[jt]s', ['/a.ts', '/b.js', '/docs/deep/er/b.ts']],
    ['[!a].*', ['/b.js', '/docs/deep/er/b.ts']],
    ['[^a-a].{ts,js}', ['/b.js', '/docs/deep/er/b.ts']],
    ['a.*', ['/a.ts', '/docs/a.md']],
    ['docs', ['/docs']],
    ['/docs/**', ['/docs/a.md', '/docs/deep/er/b.ts']],
    ['docs/', ['/docs/a.md', '/docs/deep/er/b.ts']],
    ['docs/*', ['/docs/a.md']],
    ['/docs/**/*.ts', ['/docs/deep/er/b.ts']],
    ['/**/b.*', ['/b.js', '/docs/deep/er/b.ts']],
    ['{/docs,/src}/*', ['/docs/a.md', '/src/[x].ts', '/src/ä,b{}*?.txt']],
    ['{docs,src}/a*', ['/docs/a.md']],
    ['**', PATHS],
    ['*', PATHS],
    ['/*', ['/a.ts', '/b.js', '/docs', '/x\ny.ts']],
    ['\\[x\\].ts', ['/src/[x].ts']],
    ['[[]x[]].ts', ['/src/[x].ts']],
    ['ä,b\\{}\\*[?].txt', ['/src/ä,b{}*?.txt']],
    ['(a|b).+', []],
    ['A.TS', []],
  ])('%j', async (pathPattern, expected) => {
    expect(await choose({ pathPattern }, PATHS)).toEqual(expected)
  })

  it.each([
    ['[ab', 'path_pattern: [ has no ]'],
    ['{a,{b,c}', 'path_pattern: { has no }'],
    ['a\\', 'path_pattern: there is nothing behind the last \\'],
    ['[z-a]', 'path_pattern: z-a is not a range'],
  ])('%j is refused', async (pathPattern, problem) => {
    expect(await choose({ pathPattern }, PATHS)).toBe(problem)
  })

  it('of many wildcards is matched at once', async () => {
    const paths = Array.from({ length: 200 }, (_, index) => `/${'a'.repeat(900)}${index}`)
    for (const pathPattern of [
      `${'*a'.repeat(400)}b`,
      `${'**/'.repeat(300)}b`,
      `${'{a,'.repeat(120)}b${'}'.repeat(120)}`,
    ]) {
      expect(await choose({ pathPattern }, paths)).toEqual([])
    }
  })
})

describe('a pattern', () => {
  it.each([
    ['(a', /^pattern: missing closing \)/],
    ['a**', /^pattern: invalid nested repetition operator/],
    ['(x{1000}){1000}', /^pattern: invalid repeat count/],
    ['(a)\\1', /^pattern: invalid escape sequence/],
    ['(?<=a)b', /^pattern: invalid named capture/],
    ['(?=a)', /^pattern: /],
    ['('.repeat(1000), /^pattern: /],
    ['\\p{Foo}', /^pattern: invalid character class range/],
  ])('is refused if it is malformed (%#)', async (pattern, problem) => {
    expect(await choose({ pattern }, [])).toMatch(problem)
  })

  it.each<[string, string | Buffer, string[]]>([
    ['b$', 'ab\r\nb\nbc', ['1:ab', '2:b']],
    ['^$', 'a\n\nb\n\n', ['2:', '4:']],
    ['^$', '\r\n\n', ['1:', '2:']],
    ['.*', '', []],
    ['', 'x', ['1:x']],
    ['^a', '\ufeffa\na', ['1:a', '2:a']],
    ['a\\nb', 'a\nb\n', []],
    ['(?s)a.b', 'a\nb\n', []],
    ['a.b', 'a\ud83d\ude42b\na\rb', ['1:a\ud83d\ude42b', '2:a\rb']],
    ['(?i)STRASSE|\\bÉ', 'straſſe\né\n', ['1:straſſe']],
    ['^\\p{Han}+$', '中文\n中x\n', ['1:中文']],
    ['\ud83d', '\ud83d\ude42', []],
    ['a', Buffer.from('a\0'), []],
    ['a', Buffer.from([0x61, 0xff]), []],
    ['\\x00', Buffer.from(`${'x'.repeat(8192)}\0`), [`1:${'x'.repeat(1000)}`]],
    ['🙂', `${'x'.repeat(999)}🙂${'x'.repeat(9)}`, [`1:${'x'.repeat(999)}`]],
  ])('is sought in each line, without its end (%#)', async (pattern, content, expected) => {
    expect(await find(pattern, content)).toEqual(expected)
  })

  it('finds no more than there is room for, in number and in bytes, and says so', async () => {
    const files = { '/a': 'x\nx\n', '/b': 'y\n', '/c': 'x\nx' }
    const finding = async (room: object) => {
      const answer = scanned((await scanFiles('x', files, { room })).answers[0])
      return [answer.results.map(({ path, matches }) => `${path}${matches.length}`).join(' '), answer.isFull]
    }
    const one = JSON.stringify({ path: '/a', line_number: 1, line: 'x' }).length
    expect(await finding({ matches: 4, bytes: 4 * one })).toEqual(['/a2 /c2', false])
    expect(await finding({ matches: 3, bytes: MIB })).toEqual(['/a2 /c1', true])
    expect(await finding({ matches: 10, bytes: 3 * one - 1 })).toEqual(['/a2', true])
    expect(await finding({ matches: 2, bytes: MIB })).toEqual(['/a2', true])
    expect(await finding({ matches: 0, bytes: MIB })).toEqual(['', true])
  })
})

describe('an evil pattern', () => {
  const as = 'a'.repeat(10 * MIB)
  let state = 1
  /** Letters as good as drawn, so that no two places look alike. */
  const ab = Array.from({ length: 2 * MIB }, () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state < 0x40000000 ? 'a' : 'b'
  }).join('')

  it.each<[string, string, number]>([
    ['(a+)+$', as, 1],
    ['(a*)*b|(a|aa)+c', as, 0],
    ['(a|b)*a(a|b){12}', ab, 1],
    ['(.*)(.*)(.*)(.*)(.*)(.*)[^ab]$', ab, 0],
    [Array.from({ length: 200 }, (_, index) => `w${index}`).join('|'), as, 0],
    [`(?i)${'\\pL'.repeat(330)}1`, as.slice(0, MIB), 0],
  ])('is matched in linear time (%#)', async (pattern, content, count) => {
    expect(await find(pattern, content)).toHaveLength(count)
  })

  it('is ended at its limit of time or when the caller goes, and others are not held up by it', async () => {
    const evil = '(.*a.{40}b){20}$'
    expect(await scanFiles(evil, { '/a': ab }, {}, 300)).toEqual({ answers: [], end: 'late', cpuMs: 0 })
    const caller = new AbortController()
    const running = scanFiles(evil, { '/a': ab }, { signal: caller.signal }, 60_000)
    expect(await find('a', 'a')).toEqual(['1:a'])
    caller.abort(new Error('gone'))
    await expect(running).rejects.toThrow('gone')
    expect(await find('b', 'b')).toEqual(['1:b'])
  })
})

describe('prefetch', () => {
  it('reads one item ahead, and ends its source when its user does', async () => {
    const log: string[] = []
    async function* source() {
      try {
        for (let item = 1; ; item++) {
          log.push(`read ${item}`)
          yield item
        }
      } finally {
        log.push('ended')
      }
    }
    for await (const item of prefetch(source())) {
      await new Promise(setImmediate)
      log.push(`use ${item}`)
      if (item === 2) break
    }
    expect(log).toEqual(['read 1', 'read 2', 'use 1', 'read 3', 'use 2', 'ended'])
  })

  it('reports a failure behind the items before it', async () => {
    async function* source() {
      yield 1
      throw new Error('lost')
    }
    const items = prefetch(source())
    expect(await items.next()).toEqual({ done: false, value: 1 })
    await new Promise(setImmediate)
    await expect(items.next()).rejects.toThrow('lost')
  })
})
