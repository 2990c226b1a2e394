import { latestTimes } from '../../../platform/temporal/latest-times.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const at = (ms: number) => new Date(ms)

/** Lists as Temporal does: the first 1000. Counts the calls. */
function source(times: number[], isRun = (_time: Date) => true) {
  const calls = { count: 0 }
  const list = async (from: Date, to: Date) => {
    calls.count++
    return times
      .filter((time) => time > Number(from) && time <= Number(to))
      .slice(0, 1000)
      .map(at)
  }
  return { calls, list, isRun }
}

const every = (stepMs: number, untilMs: number, fromMs = 0) =>
  Array.from({ length: Math.floor((untilMs - fromMs) / stepMs) }, (_, index) => fromMs + (index + 1) * stepMs)

describe('the latest times of a span', () => {
  it.each<[string, number[], number, number, number]>([
    ['few', every(HOUR_MS, DAY_MS), DAY_MS, 5, 1],
    ['none', [], DAY_MS, 5, 1],
    ['many, and some are wanted', every(10_000, 10 * DAY_MS), 10 * DAY_MS, 100, 6],
    ['many, all wanted', every(10_000, 2 * DAY_MS), 2 * DAY_MS, 100_000, 40],
    ['many long ago', every(10_000, DAY_MS), 300 * DAY_MS, 10, 40],
    ['many on one day of many', every(10_000, 201 * DAY_MS, 200 * DAY_MS), 300 * DAY_MS, 20_000, 40],
  ])('are found when there are %s', async (_, times, until, most, calls) => {
    const from = source(times)
    const found = await latestTimes({ after: at(0), until: at(until), most }, from)
    expect(found.map(Number)).toEqual(times.slice(-most))
    expect(from.calls.count).toBeLessThanOrEqual(calls)
  })

  it('do not include times that are not runs', async () => {
    const from = source(every(HOUR_MS, DAY_MS), (time) => Number(time) % (2 * HOUR_MS) === 0)
    const found = await latestTimes({ after: at(0), until: at(DAY_MS), most: 3 }, from)
    expect(found.map((time) => Number(time) / HOUR_MS)).toEqual([20, 22, 24])
  })

  it('are limited in number, and by the number of calls', async () => {
    const from = source(every(10_000, 10 * DAY_MS))
    expect(await latestTimes({ after: at(0), until: at(10 * DAY_MS), most: 0 }, from)).toEqual([])
    const found = await latestTimes({ after: at(0), until: at(10 * DAY_MS), most: 1e9 }, from)
    expect(from.calls.count).toBeLessThanOrEqual(50)
    expect(found.length).toBeGreaterThan(30_000)
    expect(found.at(-1)).toEqual(at(10 * DAY_MS))
  })
})
