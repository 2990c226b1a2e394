import { createStallWatch } from '../../../worker/stall.ts'

describe('the watch over an event loop', () => {
  it('vouches for a blocked loop, but not for one still turning or hanging', () => {
    const isStalled = createStallWatch(0, 0)
    const looks = [
      [1, 500],
      [2, 1000],
      [2, 1500],
      [2, 2000],
      [2, 61_000],
      [2, 61_500],
      [3, 62_000],
      [3, 63_000],
    ] as const
    expect(looks.map(([count, nowMs]) => isStalled(count, nowMs))).toEqual([
      false,
      false,
      false,
      true,
      true,
      false,
      false,
      true,
    ])
  })
})
