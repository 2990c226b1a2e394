import { backOffMs, PATIENCE_MS, retryAfterMs } from '../../../domain/organization-events/webhooks/back-off.ts'

const SECOND = 1000
const HOUR = 3_600_000

describe('the next attempt of a delivery', () => {
  it.each<[attempts: number, random: number, expected: number]>([
    [1, 0.5, 5 * SECOND],
    [1, 0, 4 * SECOND],
    [1, 1, 6 * SECOND],
    [2, 0.5, 15 * SECOND],
    [8, 0.5, 10_935 * SECOND],
    [20, 0.5, 8 * HOUR],
    [5000, 0.5, 8 * HOUR],
  ])('after attempt %d with the draw %d comes after %d ms', (attempts, random, expected) => {
    expect(backOffMs({ attempts, ageMs: 0 }, random)).toBe(expected)
  })

  it.each<[retryAfter: number, expected: number]>([
    [1, 5 * SECOND],
    [60 * SECOND, 60 * SECOND],
    [100 * HOUR, 24 * HOUR],
    [Number.MAX_SAFE_INTEGER, 24 * HOUR],
  ])('waits for a Retry-After of %d ms within bounds: %d ms', (asked, expected) => {
    expect(backOffMs({ attempts: 1, ageMs: 0, retryAfterMs: asked }, 0.5)).toBe(expected)
  })

  it('is the last one when three days are over, and then there is none', () => {
    const left = { attempts: 14, ageMs: PATIENCE_MS - HOUR }
    expect(backOffMs(left, 0.5)).toBe(HOUR)
    expect(backOffMs({ ...left, retryAfterMs: 24 * HOUR }, 0.5)).toBe(HOUR)
    expect(backOffMs({ ...left, ageMs: PATIENCE_MS }, 0.5)).toBeUndefined()
  })

  it('comes after 12 to 20 attempts in all, over three days', () => {
    let attempts = 1
    let ageMs = 0
    for (let delay = backOffMs({ attempts, ageMs }, 0.5); delay !== undefined; attempts++) {
      ageMs += delay
      delay = backOffMs({ attempts: attempts + 1, ageMs }, 0.5)
    }
    expect(ageMs).toBe(PATIENCE_MS)
    expect(attempts).toBeGreaterThanOrEqual(12)
    expect(attempts).toBeLessThanOrEqual(20)
  })
})

describe('Retry-After', () => {
  const date = 'Thu, 26 Nov 2026 10:00:00 GMT'
  it.each<[text: string | undefined, expected: number | undefined]>([
    ['120', 120 * SECOND],
    ['0', 0],
    ['Thu, 26 Nov 2026 10:01:00 GMT', 60 * SECOND],
    ['Thu, 26 Nov 2026 09:00:00 GMT', 0],
    [undefined, undefined],
    ['', undefined],
    ['-5', undefined],
    ['1e3', undefined],
    ['soon', undefined],
    ['99999999999999999999', undefined],
  ])('%s is %d ms', (text, expected) => {
    expect(retryAfterMs(new Headers({ date, ...(text !== undefined && { 'retry-after': text }) }))).toBe(expected)
  })
})
