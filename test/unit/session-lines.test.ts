import { createSessionLines } from '../../domain/kit/session-lines.ts'

describe('the lines of sessions', () => {
  it("run the work of a session one at a time, and other sessions' meanwhile", async () => {
    const inLine = createSessionLines()
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const done: string[] = []
    const run = (session: string, name: string, until?: Promise<void>) =>
      inLine(session, async () => {
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
    const inLine = createSessionLines(2)
    const { promise: gate, reject: fail } = Promise.withResolvers<void>()
    const first = inLine('a', () => gate)
    const second = inLine('a', async () => 'second')
    await expect(inLine('a', async () => 'third')).rejects.toMatchObject({ kind: 'too_many' })
    expect(await inLine('b', async () => 'other')).toBe('other')
    fail(new Error('failed'))
    await expect(first).rejects.toThrow('failed')
    expect(await second).toBe('second')
    expect(await inLine('a', async () => 'third')).toBe('third')
  })
})
