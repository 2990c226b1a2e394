import { createDeltaClock, type Time } from '../../../domain/turns/run/delta-clock.ts'

/** A time that passes when the test says so, ms by ms, in which promises settle. */
function createTime() {
  let now = 0
  let calls: { at: number; call: () => void }[] = []
  const time: Time = { now: () => now, after: (ms, call) => void calls.push({ at: now + ms, call }) }
  return {
    ...time,
    planned: () => calls.length,
    async pass(ms: number) {
      for (const end = now + ms; now < end; ) {
        now++
        const due = calls.filter(({ at }) => at <= now)
        calls = calls.filter(({ at }) => at > now)
        for (const { call } of due) call()
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
  }
}

/** A text that is written as often as the clock lets it. `writeMs` is how long a write takes. */
function createText(clock: ReturnType<typeof createDeltaClock>, time: Time) {
  const text = { writeMs: 0, times: [] as number[], lastGap: () => (text.times.at(-1) ?? 0) - (text.times.at(-2) ?? 0) }
  const write = async () => {
    text.times.push(time.now())
    if (text.writeMs > 0) await new Promise<void>((resolve) => time.after(text.writeMs, resolve))
    clock.schedule(write)
  }
  clock.schedule(write)
  return text
}

describe('the clock of deltas', () => {
  it('writes a text each 100 ms while there is room', async () => {
    const time = createTime()
    const { times } = createText(createDeltaClock(time), time)
    await time.pass(1000)
    expect(times).toEqual([100, 200, 300, 400, 500, 600, 700, 800, 900, 1000])
  })

  it('writes texts together that are due at about the same time', async () => {
    const time = createTime()
    const clock = createDeltaClock(time)
    const first = createText(clock, time)
    await time.pass(10)
    const second = createText(clock, time)
    await time.pass(35)
    const third = createText(clock, time)
    await time.pass(500)
    expect(second.times).toEqual(first.times)
    expect(third.times.map((at) => at % 100)).toEqual([50, 50, 50, 50])
  })

  it('lets texts wait while writes are slow, 500 ms at most, and no longer once they are fast again', async () => {
    const time = createTime()
    const text = createText(createDeltaClock(time), time)
    text.writeMs = 400
    await time.pass(15_000)
    expect(text.lastGap()).toBe(900)
    text.writeMs = 0
    await time.pass(5000)
    expect(text.lastGap()).toBe(100)
  })

  it('calls nothing that was cancelled, and stops when nothing waits', async () => {
    const time = createTime()
    const clock = createDeltaClock(time)
    let calls = 0
    const cancel = clock.schedule(async () => void calls++)
    cancel()
    await time.pass(300)
    expect(calls).toBe(0)
    expect(time.planned()).toBe(0)
  })
})
