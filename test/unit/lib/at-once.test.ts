import { atOnce } from '../../../lib/at-once.ts'
import { sleep } from '../../../lib/sleep.ts'

describe('working on some items at once', () => {
  it('works on all of them, and never on more than the limit at once', async () => {
    const done: number[] = []
    let running = 0
    let most = 0
    await atOnce([5, 4, 3, 2, 1, 0], 2, async (item) => {
      most = Math.max(most, ++running)
      await sleep(item)
      running--
      done.push(item)
    })
    expect([done.sort(), most]).toEqual([[0, 1, 2, 3, 4, 5], 2])
  })

  it('begins no more once it is over', async () => {
    const begun: number[] = []
    await atOnce(
      [1, 2, 3],
      1,
      async (item) => begun.push(item),
      () => begun.length === 2,
    )
    expect(begun).toEqual([1, 2])
  })

  it('fails with the first failure', async () => {
    await expect(atOnce([1, 2], 2, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  })
})
