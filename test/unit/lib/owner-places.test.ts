import { createOwnerPlaces } from '../../../lib/owner-places.ts'

const holders = (places: ReturnType<typeof createOwnerPlaces>) => {
  const cut: string[] = []
  return { cut, take: (owner: string, name = owner) => places.take({ owner, cut: () => cut.push(name) }) }
}

describe('places of owners', () => {
  it('are taken from the newest of the largest owner where there are no others', () => {
    const { cut, take } = holders(createOwnerPlaces(4, 3))
    for (const name of ['a1', 'a2', 'a3']) expect(take('a', name)).toEqual(expect.any(Function))
    expect(take('a')).toBe('own')
    expect([take('b'), take('c'), cut]).toEqual([expect.any(Function), expect.any(Function), ['a3']])
    expect([take('b'), take('d'), cut]).toEqual(['all', expect.any(Function), ['a3', 'a2']])
    expect([take('e'), cut]).toEqual(['all', ['a3', 'a2']])
  })

  it('are given back once, even by a holder that was cut off', () => {
    const { take } = holders(createOwnerPlaces(2, 2))
    const [one, two] = [take('a'), take('a')]
    expect(take('b')).toEqual(expect.any(Function))
    for (const leave of [two, two, one, one]) if (typeof leave === 'function') leave()
    expect([take('c'), take('d')]).toEqual([expect.any(Function), 'all'])
  })
})
