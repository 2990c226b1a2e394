import type { SessionStorage } from '../../../domain/session-data/storage/session-storage.ts'
import { runTool } from './run-tool.ts'

/** Storage in memory, of values or secrets alike. */
function createMemoryStorage(names: string[] = []): SessionStorage {
  const stored = new Map(names.map((name) => [name, `value of ${name}`]))
  return {
    readValue: async (key, { offset, length }) => {
      const characters = [...(stored.get(key) ?? '')]
      if (!stored.has(key)) return undefined
      const text = characters.slice(offset, offset + length).join('')
      return { text, totalCharacters: characters.length, sizeBytes: Buffer.byteLength(characters.join('')) }
    },
    readSecret: async (name) => stored.get(name),
    list: async (_, { prefix, offset, limit }) =>
      [...stored.keys()]
        .filter((name) => name.startsWith(prefix))
        .sort()
        .slice(offset, offset + limit)
        .map((name) => ({ name, updated_at: '' })),
    set: async (_, name, value) => {
      const existed = stored.has(name)
      stored.set(name, value)
      return { existed }
    },
    delete: async (_, name) => ({ existed: stored.delete(name) }),
  }
}

describe('arguments of kv_store', () => {
  it.each<[object, string | RegExp]>([
    [{}, /operation is required/],
    [{ operation: 'put', key: 'a' }, /operation must be one of .*"delete"/],
    [{ operation: 'set', value: 'x' }, 'operation "set" needs key.'],
    [{ operation: 'set' }, 'operation "set" needs key and value.'],
    [{ operation: 'set', key: 'a' }, 'operation "set" needs value.'],
    [{ operation: 'get' }, 'operation "get" needs key.'],
    [{ operation: 'delete', prefix: 'a' }, 'operation "delete" needs key.'],
    [{ operation: 'get', key: 'a', value: 'x' }, 'operation "get" takes key, offset, not value.'],
    [{ operation: 'list', key: 'a' }, 'operation "list" takes prefix, offset, limit, not key.'],
    [{ operation: 'set', key: 'a', value: { b: 1 } }, /value.*must be string/],
    [{ operation: 'set', key: '', value: 'x' }, /key.*must NOT have fewer than 1/],
    [{ operation: 'set', key: 'é'.repeat(256), value: 'x' }, /key.*must NOT have more than 255/],
    [{ operation: 'get', key: 'a', offset: -1 }, /offset.*must be >= 0/],
    [{ operation: 'get', key: 'a', offset: 11 }, 'offset is 11, but the value has 10 characters.'],
    [{ operation: 'list', offset: 2 }, 'offset is 2, but there are fewer names.'],
  ])('%j are refused with a sentence', async (args, error) => {
    const storage = createMemoryStorage(['a'])
    await expect(runTool('kv_store', { ...args }, { storage })).rejects.toThrow(error)
    expect(await storage.list('value', { prefix: '', offset: 0, limit: 9 })).toHaveLength(1)
  })

  it.each<[object, string]>([
    [{ operation: 'set', name: 'a' }, 'operation "set" needs value.'],
    [{ operation: 'get', name: 'a', value: 'x' }, 'operation "get" takes name, not value.'],
    [{ operation: 'get', name: 'a', offset: 1 }, 'operation "get" takes name, not offset.'],
    [{ operation: 'delete' }, 'operation "delete" needs name.'],
  ])('%j are refused by secret_store', async (args, error) => {
    await expect(runTool('secret_store', { ...args }, { storage: createMemoryStorage() })).rejects.toThrow(error)
  })
})

describe('results of the storage tools', () => {
  it('say what was there, also when there was nothing', async () => {
    const storage = createMemoryStorage()
    const kv = (args: object) => runTool('kv_store', { ...args }, { storage })
    expect(await kv({ operation: 'get', key: 'a' })).toEqual({ key: 'a', found: false })
    expect(await kv({ operation: 'delete', key: 'a' })).toEqual({ key: 'a', deleted: false })
    expect(await kv({ operation: 'list' })).toEqual({ keys: [], next_offset: null })
    expect(await kv({ operation: 'set', key: 'a', value: '' })).toEqual({ key: 'a', size_bytes: 0, replaced: false })
    const empty = { key: 'a', found: true, value: '', size_bytes: 0, next_offset: null }
    expect(await kv({ operation: 'get', key: 'a' })).toEqual(empty)
    expect(await kv({ operation: 'delete', key: 'a' })).toEqual({ key: 'a', deleted: true })
  })

  it('give a long value in parts that can be joined, each below the limit of results', async () => {
    const storage = createMemoryStorage()
    const value = '\u0001😀'.repeat(100_000)
    await storage.set('value', 'a', value)
    let joined = ''
    for (let offset: number | null = 0; offset !== null; ) {
      const part = (await runTool('kv_store', { operation: 'get', key: 'a', offset }, { storage })) as {
        value: string
        next_offset: number | null
      }
      expect(Buffer.byteLength(JSON.stringify(part))).toBeLessThan(512 * 1024)
      joined += part.value
      offset = part.next_offset
    }
    expect(joined === value).toBe(true)
  })

  it.each([
    ['kv_store', 'keys'],
    ['secret_store', 'secrets'],
  ])('of %s list names in parts, by prefix', async (tool, field) => {
    const names = Array.from({ length: 450 }, (_, n) => `${n % 2 === 0 ? 'even' : 'odd'}/${String(n).padStart(3, '0')}`)
    const storage = createMemoryStorage(names)
    const list = async (args: object): Promise<[number, unknown]> => {
      const value = (await runTool(tool, { operation: 'list', ...args }, { storage })) as Record<string, object[]>
      return [value[field]?.length ?? 0, value.next_offset]
    }
    expect(await list({})).toEqual([100, 100])
    expect(await list({ limit: 5000 })).toEqual([200, 200])
    expect(await list({ prefix: 'odd/', limit: 200, offset: 200 })).toEqual([25, null])
    expect(await list({ prefix: 'odd/', limit: 25, offset: 200 })).toEqual([25, null])
  })

  it('never repeat the value of a secret, except to who gets it', async () => {
    const storage = createMemoryStorage()
    const ask = (args: object) => runTool('secret_store', { ...args }, { storage })
    expect(await ask({ operation: 'set', name: 'a', value: 'hidden' })).toEqual({ name: 'a', replaced: false })
    expect(await ask({ operation: 'list' })).toEqual({ secrets: [{ name: 'a', updated_at: '' }], next_offset: null })
    expect(await ask({ operation: 'get', name: 'a' })).toEqual({ name: 'a', found: true, value: 'hidden' })
    expect(await ask({ operation: 'get', name: 'b' })).toEqual({ name: 'b', found: false })
  })
})
