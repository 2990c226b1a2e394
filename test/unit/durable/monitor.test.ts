import type { DurableSnapshot } from '../../../contract/durable.ts'
import type { ServiceHealth } from '../../../domain/upkeep/health/health.ts'
import { createMonitor } from '../../../domain/upkeep/health/monitor.ts'
import { waitFor } from '../../support/http.ts'

const POLL_MS = 20

/** Creates a fake Temporal that reports `workers`. Reads wait for `answer`. */
function createFake(pollMs = POLL_MS) {
  const fake = { workers: 1, reads: 0, underWay: 0, mostUnderWay: 0, answer: Promise.resolve() }
  const read = async (): Promise<ServiceHealth> => {
    fake.reads++
    fake.mostUnderWay = Math.max(fake.mostUnderWay, ++fake.underWay)
    await fake.answer
    fake.underWay--
    const none = { running: 0, failed: 0, ended: 0 }
    return {
      workers: fake.workers,
      backlog: { tasks: 0, oldestMs: 0 },
      turns: none,
      executions: none,
      retrying: 0,
      stalled: 0,
    }
  }
  return { fake, monitor: createMonitor(read, pollMs) }
}

type Monitor = ReturnType<typeof createMonitor>

/** Collects the monitor's snapshots. `workers` returns the number of workers in each. */
function take(monitor: Monitor) {
  const gone = new AbortController()
  const snapshots: DurableSnapshot[] = []
  const ended = (async () => {
    for await (const snapshot of monitor.follow(gone.signal)) snapshots.push(snapshot)
  })()
  return {
    snapshots,
    workers: () => snapshots.map(({ health }) => health.workers),
    leave: async () => {
      gone.abort()
      await ended
    },
  }
}

const readAgain = (fake: { reads: number }, times = 3) => {
  const reads = fake.reads + times
  return waitFor(async () => fake.reads >= reads, 'Temporal to be asked again')
}

describe('a monitor', () => {
  it('reads nothing while nobody follows it, before and after', async () => {
    const { fake, monitor } = createFake()
    expect(fake.reads).toBe(0)
    const follower = take(monitor)
    await readAgain(fake)
    await follower.leave()
    const { reads } = fake
    await new Promise((resolve) => setTimeout(resolve, 5 * POLL_MS))
    expect(fake.reads).toBe(reads)
  })

  it('gives the current state, and then only changes', async () => {
    const { fake, monitor } = createFake()
    const follower = take(monitor)
    await readAgain(fake)
    expect(follower.workers()).toEqual([1])
    fake.workers = 2
    await readAgain(fake)
    fake.workers = 0
    await readAgain(fake)
    expect(follower.workers()).toEqual([1, 2, 0])
    expect(follower.snapshots.map(({ health }) => health.status)).toEqual(['healthy', 'healthy', 'degraded'])
    await follower.leave()
  })

  it('serves all followers with the same answers, and a later one at once', async () => {
    const { fake, monitor } = createFake(60_000)
    const followers = [take(monitor), take(monitor)]
    await waitFor(async () => followers.every(({ snapshots }) => snapshots.length === 1), 'the first snapshots')
    followers.push(take(monitor))
    await waitFor(async () => followers[2]?.snapshots.length === 1, 'the snapshot that there is')
    expect(new Set(followers.map(({ snapshots }) => snapshots[0]))).toHaveProperty('size', 1)
    expect(fake.reads).toBe(1)
    await Promise.all(followers.map(({ leave }) => leave()))
  })

  it('continues for the others when one leaves', async () => {
    const { fake, monitor } = createFake()
    const [first, second] = [take(monitor), take(monitor)]
    await readAgain(fake)
    await first.leave()
    fake.workers = 5
    await waitFor(async () => second.workers().includes(5), 'the change')
    expect(first.workers()).toEqual([1])
    await second.leave()
  })

  it('gives a slow follower only the latest snapshot', async () => {
    const { fake, monitor } = createFake()
    const gone = new AbortController()
    const slow = monitor.follow(gone.signal)
    const quick = take(monitor)
    await slow.next()
    for (const workers of [2, 3, 4]) {
      fake.workers = workers
      await waitFor(async () => quick.workers().at(-1) === workers, 'the change')
    }
    expect(await slow.next()).toMatchObject({ value: { health: { workers: 4 } } })
    gone.abort()
    expect(await slow.next()).toEqual({ done: true, value: 'aborted' })
    await quick.leave()
  })

  it('reads once for followers that come and go, however quickly', async () => {
    const { fake, monitor } = createFake(60_000)
    let answer = () => {}
    fake.answer = new Promise((resolve) => {
      answer = resolve
    })
    for (let count = 0; count < 20; count++) await take(monitor).leave()
    const follower = take(monitor)
    answer()
    await waitFor(async () => follower.snapshots.length === 1, 'the first snapshot')
    await follower.leave()
    for (let count = 0; count < 20; count++) await take(monitor).leave()
    expect(fake).toMatchObject({ reads: 1, mostUnderWay: 1 })
  })

  it('does not give an outdated snapshot to the first follower after a pause', async () => {
    const { fake, monitor } = createFake()
    const first = take(monitor)
    await readAgain(fake)
    await first.leave()
    await new Promise((resolve) => setTimeout(resolve, 2 * POLL_MS))
    fake.workers = 9
    const second = take(monitor)
    await waitFor(async () => second.snapshots.length > 0, 'a snapshot')
    expect(second.workers()).toEqual([9])
    await second.leave()
  })

  it('lets a follower leave while Temporal has not answered', async () => {
    const { fake, monitor } = createFake()
    let answer = () => {}
    fake.answer = new Promise((resolve) => {
      answer = resolve
    })
    const follower = take(monitor)
    await waitFor(async () => fake.reads === 1, 'the question')
    await follower.leave()
    expect(follower.snapshots).toEqual([])
    answer()
  })
})
