import { createOnce, findOrInsert } from '../../domain/kit/create-once.ts'

/** Creates a table of rows by id that records its calls. */
function createTable() {
  const rows = new Map<string, string>()
  const calls: string[] = []
  const find = async (id: string) => {
    calls.push('find')
    return rows.get(id)
  }
  const insert = async (id: string) => {
    calls.push('insert')
    if (rows.has(id)) return undefined
    rows.set(id, `row ${id}`)
    return rows.get(id)
  }
  return { rows, calls, find, insert }
}

describe('a create', () => {
  it('without an Idempotency-Key only inserts, each time again', async () => {
    const { rows, calls, ...table } = createTable()
    await createOnce({}, table)
    await createOnce({}, table)
    expect(calls).toEqual(['insert', 'insert'])
    expect(rows.size).toBe(2)
  })

  it('finds what an earlier run has created, and inserts nothing', async () => {
    const { rows, calls, ...table } = createTable()
    const created = await createOnce({ uuid: 'a' }, table)
    expect(await createOnce({ uuid: 'a' }, table)).toBe(created)
    expect(calls).toEqual(['find', 'insert', 'find'])
    expect(rows.size).toBe(1)
  })

  it('finds what another run has inserted in the meantime', async () => {
    const { rows, calls, ...table } = createTable()
    const runs = [1, 2, 3].map(() => createOnce({ uuid: 'a' }, table))
    expect(await Promise.all(runs)).toEqual(['row a', 'row a', 'row a'])
    expect(calls.filter((call) => call === 'insert')).toHaveLength(3)
    expect(rows.size).toBe(1)
  })

  it('finds it even if its own insert fails because of it', async () => {
    const { rows, find } = createTable()
    const insert = async (id: string) => {
      rows.set(id, 'from the other run')
      throw new Error('the limit is reached')
    }
    expect(await createOnce({ uuid: 'a' }, { find, insert })).toBe('from the other run')
  })

  it('fails as its insert does when no other run has created anything', async () => {
    const { find } = createTable()
    const insert = () => Promise.reject(new Error('the limit is reached'))
    for (const attempt of [{}, { uuid: 'a' }]) {
      await expect(createOnce(attempt, { find, insert })).rejects.toThrow('the limit is reached')
    }
  })

  it('is distinguished from an id that another caller has taken', async () => {
    const taken = { find: async () => null, insert: async () => null }
    for (const attempt of [{}, { uuid: 'a' }]) {
      expect(await findOrInsert(attempt, taken)).toBeUndefined()
      await expect(createOnce(attempt, taken)).rejects.toThrow('neither created nor found')
    }
  })
})
