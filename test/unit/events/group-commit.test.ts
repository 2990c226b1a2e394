import { createGroupCommit } from '../../../domain/events/log/group-commit.ts'

type Append = { sessionId: string; name: string }
type Statement = {
  kind: 'alone' | 'together'
  names: string[]
  end(results?: (string | undefined)[]): void
  fail(error: Error): void
}

/** A group commit whose statements end when the test says so. `begun` are all statements, in their order. */
function createFake() {
  const begun: Statement[] = []
  const begin = (kind: Statement['kind'], appends: Append[]) => {
    const { promise, resolve, reject } = Promise.withResolvers<(string | undefined)[]>()
    const names = appends.map(({ name }) => name)
    begun.push({ kind, names, end: (results = names) => resolve(results), fail: reject })
    return promise
  }
  const commit = createGroupCommit<Append, string>({
    alone: async (append) => (await begin('alone', [append]))[0] as string,
    together: (appends) => begin('together', appends),
    hasRolledBack: (error) => (error as Error).message !== 'connection lost',
  })
  const append = (name: string, sessionId = name) => commit({ sessionId, name })
  return { begun, append, shown: () => begun.map(({ kind, names }) => `${kind}: ${names.join(' ')}`) }
}

/** Lets everything happen that waits for no statement. */
const settle = () => new Promise((resolve) => setImmediate(resolve))
const numbered = (count: number, prefix = 'w') => Array.from({ length: count }, (_, index) => `${prefix}${index}`)

/** Number of statements under way at most. */
const BUSY = 4

/** A group commit with an append under way in each statement. */
async function createBusy() {
  const fake = createFake()
  const appended: Promise<string>[] = []
  for (const name of ['a', 'b', 'c', 'd']) {
    appended.push(fake.append(name))
    await settle()
  }
  return { ...fake, appended }
}

describe('appends', () => {
  it('are recorded at once and by themselves while few are under way', async () => {
    const { begun, append } = createFake()
    for (const name of ['a', 'b', 'c', 'd']) {
      const appended = append(name)
      await settle()
      begun.at(-1)?.end()
      expect(await appended).toBe(name)
    }
    const busy = await createBusy()
    expect(busy.shown()).toEqual(['a', 'b', 'c', 'd'].map((name) => `alone: ${name}`))
  })

  it('that come at the same moment share a statement', async () => {
    const { begun, append, shown } = createFake()
    const three = ['a', 'b', 'c'].map((name) => append(name))
    await settle()
    expect(shown()).toEqual(['together: a b c'])
    begun[0]?.end()
    expect(await Promise.all(three)).toEqual(['a', 'b', 'c'])
  })

  it('wait only while all statements are under way, then go together, in their order', async () => {
    const { begun, append, shown, appended } = await createBusy()
    const waiting = numbered(3).map((name) => append(name))
    await settle()
    expect(shown()).toHaveLength(BUSY)
    begun[3]?.end()
    await settle()
    expect(shown().slice(BUSY)).toEqual(['together: w0 w1 w2'])
    for (const statement of begun) statement.end()
    expect(await Promise.all([...appended, ...waiting])).toEqual(['a', 'b', 'c', 'd', 'w0', 'w1', 'w2'])
  })

  it('form groups of a limited size', async () => {
    const { begun, append, shown } = await createBusy()
    const waiting = numbered(150).map((name) => append(name))
    for (let ended = 3; ended < begun.length; ended++) {
      begun[ended]?.end()
      await settle()
    }
    expect(await Promise.all(waiting)).toEqual(numbered(150))
    expect(begun.slice(BUSY).map(({ names }) => names.length)).toEqual([64, 64, 22])
    expect(
      shown()
        .slice(BUSY)
        .every((statement) => statement.startsWith('together')),
    ).toBe(true)
  })

  it('do not wait behind too many others', async () => {
    const { append, begun } = await createBusy()
    for (const name of numbered(1002)) void append(name)
    await settle()
    expect(begun.slice(BUSY).map(({ kind, names }) => [kind, ...names])).toEqual([
      ['alone', 'w1000'],
      ['alone', 'w1001'],
    ])
  })

  it('of one session are recorded one at a time, in the order of the calls', async () => {
    const { begun, append, shown } = createFake()
    const done: string[] = []
    const appended = ['1', '2', '3'].map((name) => append(name, 'a').then((result) => done.push(result)))
    for (let ended = 0; ended < 3; ended++) {
      await settle()
      expect(begun).toHaveLength(ended + 1)
      begun[ended]?.end()
    }
    await Promise.all(appended)
    expect(shown()).toEqual(['alone: 1', 'alone: 2', 'alone: 3'])
    expect(done).toEqual(['1', '2', '3'])
  })

  it('that are left out of a group are recorded by themselves, and hold up no others', async () => {
    const { begun, append, shown } = await createBusy()
    const [first, left, last] = numbered(3).map((name) => append(name))
    const next = append('next', 'w1')
    begun[3]?.end()
    await settle()
    begun[4]?.end(['w0', undefined, 'w2'])
    expect([await first, await last]).toEqual(['w0', 'w2'])
    expect(shown().slice(5)).toEqual(['alone: w1'])
    const other = append('other')
    await settle()
    expect(shown().slice(6)).toEqual(['alone: other'])
    begun[6]?.end()
    expect(await other).toBe('other')
    begun[5]?.end()
    expect(await left).toBe('w1')
    await settle()
    begun[7]?.end()
    expect(await next).toBe('next')
  })

  it('of a group that was rolled back are tried once each by themselves', async () => {
    const { begun, append, shown } = await createBusy()
    const [good, bad] = numbered(2).map((name) => append(name))
    begun[3]?.end()
    await settle()
    begun[4]?.fail(new Error('invalid'))
    await settle()
    expect(shown().slice(5)).toEqual(['alone: w0', 'alone: w1'])
    begun[5]?.end()
    begun[6]?.fail(new Error('still invalid'))
    expect(await good).toBe('w0')
    await expect(bad).rejects.toThrow('still invalid')
    expect(begun).toHaveLength(7)
  })

  it('of a group that may have been committed are not repeated', async () => {
    const { begun, append } = await createBusy()
    const lost = numbered(2).map((name) => append(name))
    begun[3]?.end()
    await settle()
    begun[4]?.fail(new Error('connection lost'))
    const outcomes = await Promise.allSettled(lost)
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    const next = append('next')
    await settle()
    expect(begun).toHaveLength(6)
    begun[5]?.end()
    expect(await next).toBe('next')
  })
})
