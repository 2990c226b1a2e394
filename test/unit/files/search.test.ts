import type { Deps } from '../../../domain/deps.ts'
import { grepFiles } from '../../../domain/session-data/files/grep/search.ts'
import { createGrepSlots, createGrepThreads } from '../../../domain/session-data/files/grep/threads.ts'

const MIB = 1024 * 1024
const threads = { greps: createGrepThreads() }
afterAll(() => threads.greps.close())

type Reading = { most: number; read: number; onRead?: () => void; gate?: Promise<unknown> }

/** Returns the dependencies of a search in a session with files of a MiB, which count what is read. */
function sessionOf(files: number, reading: Reading): Deps {
  const paths = Array.from({ length: files }, (_, index) => `/${String(index).padStart(4, '0')}`)
  const bytes = Buffer.alloc(MIB, 'abc\n')
  let now = 0
  const deps = {
    threads,
    owners: { ownerOf: async (id: string) => id },
    grepSlots: createGrepSlots(),
    db: {
      // The session itself, then pages of paths, each behind a path.
      $queryRaw: async (sql: TemplateStringsArray, ...values: unknown[]) => {
        if (sql.join('').includes('sessionCreatedAt')) return [{ sessionCreatedAt: new Date(), id: null }]
        const [after, take] = [String(values[2]), Number(values[3])]
        return paths
          .filter((path) => path > after)
          .slice(0, take)
          .map((path) => ({ path }))
      },
    },
    fileStore: {
      readFirst: async (_organization: string, _session: string, wanted: string[]) => {
        reading.onRead?.()
        reading.read++
        reading.most = Math.max(reading.most, ++now)
        await (reading.gate ?? new Promise(setImmediate))
        now--
        return wanted.slice(0, 3).map((path) => ({ path, bytes }))
      },
    },
  }
  // Nothing else is used.
  return deps as unknown as Deps
}
const scopeOf = (organizationId: string) => ({ organizationId, sessionId: 's' })
const never = new AbortController().signal

describe('a search', () => {
  it('reads one piece at a time, and only as long as there is room for matches', async () => {
    const reading: Reading = { most: 0, read: 0 }
    const deps = sessionOf(7, reading)
    const { results, isTruncated } = await grepFiles(deps, scopeOf('a'), { pattern: 'c$' }, never)
    expect(results.map(({ path, matches }) => [path, matches.length])).toEqual([['/0000', 10_000]])
    // The second piece is read while the first is searched.
    expect([isTruncated, reading]).toEqual([true, { most: 1, read: 2 }])
    const all = await grepFiles(deps, scopeOf('a'), { pattern: 'x', path_pattern: '*[0-5]' }, never)
    expect([all, reading.read]).toEqual([{ results: [], isTruncated: false }, 4])
  })

  it('is one of four at once, and of three of an organization', async () => {
    /** Holds all reads until as many have begun as may, and then some time for more. */
    const most = async (organizations: string[], expected: number): Promise<number> => {
      const open = Promise.withResolvers<void>()
      const reading: Reading = { most: 0, read: 0, gate: open.promise }
      const deps = sessionOf(9, reading)
      const searches = organizations.map((id) => grepFiles(deps, scopeOf(id), { pattern: 'x' }, never))
      for (let after = 0; after < 1000; after += reading.most < expected ? 0 : 1) await new Promise(setImmediate)
      open.resolve()
      await Promise.all(searches)
      expect(reading.read).toBe(3 * organizations.length)
      return reading.most
    }
    expect(await most(['a', 'a', 'a', 'a', 'a'], 3)).toBe(3)
    expect(await most(['a', 'a', 'a', 'b', 'b', 'c'], 4)).toBe(4)
  })

  it('stops reading when its caller has gone, and refuses malformed patterns in a session without files', async () => {
    const caller = new AbortController()
    const reading: Reading = { most: 0, read: 0, onRead: () => reading.read === 3 && caller.abort(new Error('gone')) }
    const gone = grepFiles(sessionOf(3000, reading), scopeOf('a'), { pattern: 'x' }, caller.signal)
    await expect(gone).rejects.toThrow('gone')
    expect(reading.read).toBeLessThanOrEqual(5)
    const empty = sessionOf(0, { most: 0, read: 0 })
    await expect(grepFiles(empty, scopeOf('a'), { pattern: '(' }, never)).rejects.toThrow(/^pattern: missing/)
    await expect(grepFiles(empty, scopeOf('a'), { pattern: 'x', path_pattern: '{' }, never)).rejects.toThrow(
      'path_pattern: { has no }',
    )
    expect((await grepFiles(empty, scopeOf('a'), { pattern: 'x', path_pattern: '' }, never)).results).toEqual([])
  })
})
