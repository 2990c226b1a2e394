import { createDiscoveries } from '../../../domain/mcp-servers/discoveries.ts'

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

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('discoveries', () => {
  it('of one server run one at a time, and later ones join', async () => {
    const discoveries = createDiscoveries()
    const { work, seen, end } = held()
    const both = [discoveries.run(server('a'), work), discoveries.run(server('a'), work)]
    await settled()
    end()
    expect(await Promise.all(both)).toEqual([true, true])
    expect(seen.runs).toBe(1)
    expect(await discoveries.run(server('a'), async () => false)).toBe(false)
  })

  it('of an earlier revision are aborted, and one of a later revision is joined', async () => {
    const discoveries = createDiscoveries()
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

  it('run eight at once, and one organization never has all places', async () => {
    const discoveries = createDiscoveries()
    const works = Array.from({ length: 20 }, held)
    const running = works.map(({ work }, at) => discoveries.run(server(`${at}`), work))
    await settled()
    expect(works.filter(({ seen }) => seen.runs > 0)).toHaveLength(7)
    expect(await discoveries.run(server('x', 0, 'another organization'), async () => true)).toBe(true)
    await discoveries.close()
    expect(new Set(await Promise.all(running))).toEqual(new Set([false]))
  })

  it('reject as their work does, unless they are aborted', async () => {
    const discoveries = createDiscoveries()
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
