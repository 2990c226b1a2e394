import { createSessionMutex } from '../../domain/kit/session-mutex.ts'

describe('the lines of sessions', () => {
  it("run the work of a session one at a time, and other sessions' meanwhile", async () => {
    const runExclusive = createSessionMutex()
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const done: string[] = []
    const run = (session: string, name: string, until?: Promise<void>) =>
      runExclusive(session, async () => {
        await until
        done.push(name)
      })
    const first = [run('a', 'a1', gate), run('a', 'a2')]
    await run('b', 'b1')
    open()
    await Promise.all(first)
    expect(done).toEqual(['b1', 'a1', 'a2'])
  })

  it('refuse work beyond their length, and take more when some is done, also when it failed', async () => {
    const runExclusive = createSessionMutex(2)
    const { promise: gate, reject: fail } = Promise.withResolvers<void>()
    const first = runExclusive('a', () => gate)
    const second = runExclusive('a', async () => 'second')
    await expect(runExclusive('a', async () => 'third')).rejects.toMatchObject({ kind: 'too_many' })
    expect(await runExclusive('b', async () => 'other')).toBe('other')
    fail(new Error('failed'))
    await expect(first).rejects.toThrow('failed')
    expect(await second).toBe('second')
    expect(await runExclusive('a', async () => 'third')).toBe('third')
  })
})
