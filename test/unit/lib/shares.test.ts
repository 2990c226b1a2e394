import { createShares } from '../../../lib/shares.ts'

/** Takes places until there are none. Returns what gives them back. */
function takeAll(shares: ReturnType<typeof createShares>, owner: string): (() => void)[] {
  const taken: (() => void)[] = []
  for (let leave = shares.take(owner); leave !== undefined; leave = shares.take(owner)) taken.push(leave)
  return taken
}

describe('shares', () => {
  it('give one owner four fifths, and the next ones less and less of the rest', () => {
    const shares = createShares(2500)
    expect(takeAll(shares, 'greedy')).toHaveLength(2000)
    const second = takeAll(shares, 'second').length
    expect(second).toBeGreaterThan(50)
    expect(second).toBeLessThan(100)
    expect(takeAll(shares, 'third').length).toBeLessThan(second)
  })

  it('have a place for an owner who has none, to the last', () => {
    const shares = createShares(100)
    for (let index = 0; index < 100; index++) expect(shares.take(`owner ${index}`)).toBeDefined()
    expect(shares.take('one more')).toBeUndefined()
  })

  it('give a place to another when one is given back, or anyway to who must not wait', () => {
    const shares = createShares(5)
    const [leave] = takeAll(shares, 'greedy')
    expect(shares.heldBy('greedy')).toBe(4)
    const leaveToo = shares.takeAnyway('greedy')
    expect(shares.take('other')).toBeUndefined()
    leave?.()
    expect(shares.take('greedy')).toBeUndefined()
    expect(shares.take('other')).toBeDefined()
    leaveToo()
    expect(shares.heldBy('greedy')).toBe(3)
  })
})
