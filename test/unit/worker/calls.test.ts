import { createCalls } from '../../../worker/calls.ts'

const pending = () => new Promise<never>(() => {})

/** Returns in how many ms a call comes again that was turned away. */
const turnedAway = async (calls: ReturnType<typeof createCalls>, owner: string): Promise<number> => {
  const error = await calls.run(owner, pending).catch((reason) => reason)
  expect(error).toMatchObject({ type: 'waits_for_place', nonRetryable: false })
  return error.nextRetryDelay
}

describe('calls of tools', () => {
  it("of an owner with many come again later, one after the other, and other owners' run", async () => {
    const calls = createCalls(5)
    const ends = Array.from({ length: 4 }, () => Promise.withResolvers<string>())
    const running = ends.map(({ promise }) => calls.run('greedy', () => promise))
    const first = await turnedAway(calls, 'greedy')
    const second = await turnedAway(calls, 'greedy')
    expect(first).toBeGreaterThanOrEqual(1000)
    expect(second).toBeGreaterThan(first)
    expect(await calls.run('other', async () => 'ran')).toBe('ran')
    ends[0]?.resolve('done')
    expect(await running[0]).toBe('done')
    expect(await calls.run('greedy', async () => 'ran')).toBe('ran')
  })

  it('give their place back when they fail', async () => {
    const calls = createCalls(1)
    await expect(calls.run('one', () => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
    expect(await calls.run('two', async () => 'ran')).toBe('ran')
  })
})
