import { createDiscoveries } from '../../../domain/tools/mcp-servers/discoveries.ts'
import { sleep } from '../../../lib/sleep.ts'

const server = (id: string, revision = 0, organizationId = 'o') => ({ organizationId, id, revision })

/** Returns work that ends when it is told to, or aborts. */
function held() {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const seen = { runs: 0, aborted: false }
  const work = (signal: AbortSignal): Promise<boolean> => {
    seen.runs++
    const aborted = new Promise<never>((_, reject) =>
      signal.addEventListener('abort', () => {
        seen.aborted = true
        reject(signal.reason)
      }),
    )
    return Promise.race([promise, aborted])
  }
  return { work, seen, end: () => resolve(true) }
}

/** Organizations whose names begin with the same two characters belong to one owner. */
const ownerOf = async (organizationId: string) => organizationId.slice(0, 2)
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('discoveries', () => {
  it('of one server run one at a time, and later ones join', async () => {
    const discoveries = createDiscoveries(ownerOf)
    const { work, seen, end } = held()
    const both = [discoveries.run(server('a'), work), discoveries.run(server('a'), work)]
    await settled()
    end()
    expect(await Promise.all(both)).toEqual([true, true])
    expect(seen.runs).toBe(1)
    expect(await discoveries.run(server('a'), async () => false)).toBe(false)
  })

  it('of an earlier revision are aborted, and one of a later revision is joined', async () => {
    const discoveries = createDiscoveries(ownerOf)
    const [first, second] = [held(), held()]
    const old = discoveries.run(server('a', 1), first.work)
    await settled()
    const current = discoveries.run(server('a', 2), second.work)
    expect(await old).toBe(false)
    expect(first.seen.aborted).toBe(true)
    const late = discoveries.run(server('a', 1), first.work)
    await settled()
    second.end()
    expect(await Promise.all([current, late])).toEqual([true, true])
    expect(first.seen.runs).toBe(1)
  })

  it('run 64 at once, at most 8 of one owner', async () => {
    const discoveries = createDiscoveries(ownerOf)
    const organizations = Array.from({ length: 9 }, (_, at) => `o${at}`)
    const works = organizations.map((organization) =>
      Array.from({ length: 10 }, (_, at) => {
        const { work, seen } = held()
        return { seen, ended: discoveries.run(server(`${at}`, 0, `${organization}, ${at % 2}`), work) }
      }),
    )
    await settled()
    const counts = works.map((ofOne) => ofOne.filter(({ seen }) => seen.runs > 0).length)
    expect(counts).toEqual([8, 8, 8, 8, 8, 8, 8, 8, 0])
    await discoveries.close()
    const results = works.flat().map(({ ended }) => ended)
    expect(new Set(await Promise.all(results))).toEqual(new Set([false]))
  })

  it('without a place are refused soon, and their server counts as known until there is one', async () => {
    const discoveries = createDiscoveries(ownerOf, { knownMs: 1, firstMs: 1e9, placeMs: 10 })
    const hanging = Array.from({ length: 8 }, held)
    const running = hanging.map(({ work }, at) => discoveries.run(server(`${at}`), work))
    const [late, other] = [server('late'), server('late', 0, 'another organization')]
    expect(discoveries.patienceMs(late, false)).toBe(1e9)
    expect(await discoveries.run(late, async () => true)).toBe(false)
    expect(discoveries.patienceMs(late, false)).toBe(1)
    expect(discoveries.patienceMs(other, false)).toBe(1e9)
    for (const { end } of hanging) end()
    await Promise.all(running)
    expect(await discoveries.run(late, async () => true)).toBe(true)
    expect(discoveries.patienceMs(late, false)).toBe(1e9)
  })

  it('are waited for from their beginning on, and from anew at another revision', async () => {
    const discoveries = createDiscoveries(ownerOf, { knownMs: 20, firstMs: 1e9, placeMs: 1e6 })
    const { work } = held()
    void discoveries.run(server('a', 1), work)
    expect(discoveries.patienceMs(server('b', 1), true)).toBe(20)
    await sleep(50)
    expect(discoveries.patienceMs(server('a', 1), true)).toBe(0)
    expect(discoveries.patienceMs(server('a', 1), false)).toBeLessThan(1e9)
    expect(discoveries.patienceMs(server('a', 2), true)).toBe(20)
    await discoveries.close()
  })

  it('reject as their work does, unless they are aborted', async () => {
    const discoveries = createDiscoveries(ownerOf)
    const failing = async () => {
      throw new Error('broken')
    }
    await expect(discoveries.run(server('a'), failing)).rejects.toThrow('broken')
    const { work, seen } = held()
    const running = discoveries.run(server('a'), work)
    await settled()
    await discoveries.close()
    expect([await running, seen.aborted]).toEqual([false, true])
  })
})
