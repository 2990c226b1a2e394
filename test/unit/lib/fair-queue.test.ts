import { createFairQueue, createKeyedQueue } from '../../../lib/fair-queue.ts'

const never = new AbortController().signal

describe('a fair queue', () => {
  it('refuses the newest job of the largest owner when it is full', async () => {
    const slots = createFairQueue(1, 60_000, { maxWaiting: 4 })
    const log: string[] = []
    const enter = (owner: string, name: string) =>
      slots.enter({ owner }, never).then((hasEntered) => log.push(`${name} ${hasEntered ? 'in' : 'refused'}`))
    await enter('large', 'a')
    const waiting = ['b', 'c', 'd', 'e'].map((name) => enter('large', name))
    waiting.push(enter('large', 'f'), enter('small', 'g'), enter('small', 'h'), enter('small', 'i'))
    await new Promise(setImmediate)
    // A newcomer is refused if no owner has more waiting than its own.
    expect(log.sort()).toEqual(['a in', 'd refused', 'e refused', 'f refused', 'i refused'])
    for (const owner of ['large', 'large', 'small', 'large', 'small']) {
      slots.leave({ owner })
      await new Promise(setImmediate)
    }
    expect(log.slice(5)).toEqual(['b in', 'g in', 'c in', 'h in'])
    await Promise.all(waiting)
  })

  it('runs work when a slot is free, also after work that failed, and refuses it when none is', async () => {
    const queue = createFairQueue(1, Number.POSITIVE_INFINITY, { maxWaiting: 1 })
    const { promise: gate, reject: fail } = Promise.withResolvers<string>()
    const refuse = () => 'refused'
    const running = [
      queue.run({}, () => gate, refuse),
      queue.run({}, async () => 'second', refuse),
      queue.run({}, async () => 'third', refuse),
    ]
    expect(await running[2]).toBe('refused')
    fail(new Error('failed'))
    await expect(running[0]).rejects.toThrow('failed')
    expect(await running[1]).toBe('second')
  })
})

it("a keyed queue runs the work of a key one at a time, and other keys' meanwhile", async () => {
  const queue = createKeyedQueue(1, 60_000)
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const done: string[] = []
  const run = (key: string, name: string, until?: Promise<void>) =>
    queue.run(
      key,
      {},
      async () => {
        await until
        done.push(name)
      },
      () => {},
      never,
    )
  const first = [run('a', 'a1', gate), run('a', 'a2')]
  await run('b', 'b1')
  open()
  await Promise.all(first)
  expect(done).toEqual(['b1', 'a1', 'a2'])
})
