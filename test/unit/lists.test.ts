import { counted, type PageStart, pages } from '../../domain/kit/lists.ts'

/** Creates a list of the numbers below `length`, read in pages of up to `mostAtOnce`. `places` records the reads. */
function createList(length: number, mostAtOnce = Number.POSITIVE_INFINITY) {
  const places: PageStart<number>[] = []
  const read = async (place: PageStart<number>) => {
    places.push(place)
    const start = (place.after ?? -1) + 1 + place.skip
    const all = Array.from({ length }, (_, row) => row).slice(start, start + place.take)
    const rows = all.slice(0, mostAtOnce)
    return { rows, hasMore: rows.length === place.take || rows.length < all.length }
  }
  return { places, read }
}

const present = (rows: number[]): string[] => rows.map((row) => `row ${row}`)

async function collect<T>(list: AsyncGenerator<T[]>): Promise<T[][]> {
  const read: T[][] = []
  for await (const page of list) read.push(page)
  return read
}

describe('pages', () => {
  const expected = (from: number, to: number): string[] =>
    present(Array.from({ length: Math.max(0, to - from) }, (_, row) => from + row))

  it.each([1, 3, Number.POSITIVE_INFINITY])('have each row once, in order, of %d at most', async (mostAtOnce) => {
    for (const length of [0, 1, 4, 5, 11]) {
      for (const offset of [0, 2, 12]) {
        for (const limit of [undefined, 0, 1, 4, 5, 20]) {
          const { read } = createList(length, mostAtOnce)
          const found = await collect(pages({ read, present, atOnce: 4, offset, limit }))
          const end = Math.min(length, offset + (limit ?? length))
          expect(found.flat()).toEqual(expected(offset, end))
          expect(found).not.toContainEqual([])
        }
      }
    }
  })

  it('are read one after the other, on demand', async () => {
    const { places, read } = createList(100)
    const list = pages({ read, present, atOnce: 10 })
    expect(places).toEqual([])
    await list.next()
    expect(places).toEqual([{ after: undefined, skip: 0, take: 10 }])
    await list.next()
    expect(places).toHaveLength(2)
    expect(places[1]).toEqual({ after: 9, skip: 0, take: 10 })
    await list.return(undefined)
    expect(places).toHaveLength(2)
  })

  it('of large rows are read in small numbers', async () => {
    const { places, read } = createList(12, 2)
    await collect(pages({ read, present, atOnce: 20 }))
    expect(places.map(({ take }) => take)).toEqual([20, 4, 4, 4, 4, 4])
  })

  it('have no more rows than requested from a reader that reads ahead', async () => {
    const read = async ({ after = -1 }: PageStart<number>) => ({
      rows: [after + 1, after + 2, after + 3],
      hasMore: true,
    })
    expect((await collect(pages({ read, present, atOnce: 3, limit: 5 }))).flat()).toEqual(expected(0, 5))
  })
})

describe('a counted list', () => {
  it('reads some rows at a time from the offset, and returns the total', async () => {
    const asked: string[][] = []
    const read = async (ids: string[]) => {
      asked.push(ids)
      return ids.filter((id) => id !== 'gone')
    }
    const ids = ['a', 'b', 'gone', 'c', 'gone', 'gone']
    const list = counted({ ids, read, atOnce: 2, total: 60, offset: 20, limit: 6 })
    expect(list).toMatchObject({ total: 60, offset: 20, limit: 6 })
    expect(asked).toEqual([])
    expect(await collect(list.pages)).toEqual([['a', 'b'], ['c']])
    expect(asked).toEqual([
      ['a', 'b'],
      ['gone', 'c'],
      ['gone', 'gone'],
    ])
  })
})
