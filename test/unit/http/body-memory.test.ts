import { createBodyMemory } from '../../../api/http/body-memory.ts'

const refusal = expect.objectContaining({ status: 503, headers: { 'Retry-After': '2' } })

function statusOf(add: () => void): number {
  try {
    add()
    return 200
  } catch (error) {
    expect(error).toEqual(refusal)
    return 503
  }
}

describe('memory for bodies', () => {
  it('is shared: one owner has at most a quarter of each kind', () => {
    const memory = createBodyMemory(1600)
    const [first, second] = [memory.hold('one'), memory.hold('one')]
    first.add(200, 'plain')
    second.add(100, 'plain')
    expect(statusOf(() => second.add(1, 'plain'))).toBe(503)
    second.add(100, 'compressed')
    expect(statusOf(() => first.add(1, 'compressed'))).toBe(503)
    memory.hold('other').add(300, 'plain')
    memory.hold(undefined).add(300, 'plain')
    expect(statusOf(() => memory.hold(undefined).add(1, 'plain'))).toBe(503)
  })

  it('is limited for all owners together', () => {
    const memory = createBodyMemory(1600)
    for (const owner of ['1', '2', '3', '4']) memory.hold(owner).add(300, 'plain')
    expect(statusOf(() => memory.hold('5').add(1, 'plain'))).toBe(503)
  })

  it('is free again once released, also by a request that was refused', () => {
    const memory = createBodyMemory(1600)
    for (let again = 0; again < 10; again++) {
      const hold = memory.hold('one')
      hold.add(300, 'plain')
      expect(statusOf(() => hold.add(1, 'plain'))).toBe(503)
      hold.release()
      hold.release()
    }
  })
})
