import { invalid } from '../../../domain/kit/errors.ts'
import type { Found } from '../../../domain/session-data/files/grep/found.ts'
import { checkArguments } from '../../../domain/tools/capabilities/arguments/check.ts'
import { createSchemaThreads } from '../../../domain/tools/capabilities/arguments/threads.ts'
import { grepFiles } from '../../../domain/tools/capabilities/builtin/session-file-system/grep-files.ts'
import type { ToolContext } from '../../../domain/tools/capabilities/capability.ts'

const threads = createSchemaThreads()
afterAll(() => threads.close())

const FILES = ['/a', '/b', '/c']
/** Finds `count` matches in each of three files. */
const found = (count: number, line = 'x', isTruncated = false): Found => ({
  isTruncated,
  results: FILES.map((path) => ({
    path,
    matches: Array.from({ length: count }, (_, index) => ({ path, line_number: index + 1, line })),
  })),
})

const run = async (args: Record<string, unknown>, grep: (request: unknown) => Found) => {
  const context = { files: { grep: async (request: unknown) => grep(request) }, signal: new AbortController().signal }
  // Nothing else of the context is used.
  const { value } = await grepFiles.run({ pattern: 'x', ...args }, context as unknown as ToolContext)
  return value as { matches: { path: string; line_number: number; line: string }[]; [key: string]: unknown }
}
const placesOf = ({ matches }: Awaited<ReturnType<typeof run>>) =>
  matches.map(({ path, line_number }) => `${path}:${line_number}`)

describe('grep_files', () => {
  it.each([
    [{ pattern: 'x' }, true],
    [{ pattern: 'x', path_pattern: '*.ts', offset: 0, limit: 1000 }, true],
    [{}, false],
    [{ pattern: '' }, false],
    [{ pattern: 'x'.repeat(1001) }, false],
    [{ pattern: 'x', limit: 0 }, false],
    [{ pattern: 'x', limit: 1001 }, false],
    [{ pattern: 'x', offset: -1 }, false],
    [{ pattern: 'x', path: '/a' }, false],
  ])('takes %j: %j', async (args, isValid) => {
    const [problem] = await checkArguments(threads, [{ schema: grepFiles.parameters, args, isTrusted: true }])
    expect(problem === undefined).toBe(isValid)
  })

  it('asks for what it is asked for', async () => {
    const asked: unknown[] = []
    const grep = (request: unknown) => {
      asked.push(request)
      return found(0)
    }
    expect(await run({}, grep)).toEqual({ matches: [] })
    await run({ path_pattern: '*.ts' }, grep)
    expect(asked).toEqual([{ pattern: 'x' }, { pattern: 'x', path_pattern: '*.ts' }])
  })

  it('gives the matches in parts, and says where the next ones begin and how many are left', async () => {
    const first = await run({}, () => found(50))
    expect([placesOf(first).length, first.next_offset, first.matches_left]).toEqual([100, 100, 50])
    const second = await run({ offset: 49, limit: 2 }, () => found(50))
    expect([placesOf(second), second.next_offset, second.matches_left]).toEqual([['/a:50', '/b:1'], 51, 99])
    expect(await run({ offset: 149 }, () => found(50))).toEqual({
      matches: [{ path: '/c', line_number: 50, line: 'x' }],
    })
    expect(await run({ offset: 150 }, () => found(50, 'x', true))).toEqual({
      matches: [],
      note: 'There are more than 150 matches; narrow pattern or path_pattern.',
    })
  })

  it('cuts lines, and ends a part that becomes too large', async () => {
    const line = `${'x'.repeat(499)}🙂`
    const { matches, next_offset } = await run({ limit: 1000 }, () => found(300, line))
    expect(matches[0]?.line).toBe(`${'x'.repeat(499)}…`)
    expect(JSON.stringify(matches).length).toBeLessThan(101_000)
    expect([matches.length > 150, next_offset]).toEqual([true, matches.length])
    expect((await run({}, () => found(1, '\0'.repeat(500)))).matches[0]?.line).toHaveLength(500)
  })

  it('reports a bad pattern', async () => {
    const refuse = () => {
      throw invalid('pattern: missing closing )')
    }
    await expect(run({}, refuse)).rejects.toThrow('pattern: missing closing )')
  })
})
