import { createParseQueue } from '../../../api/http/parse-queue.ts'

describe('a queue for parsing', () => {
  it('lets one body through in each round of the event loop', async () => {
    const queue = createParseQueue()
    let rounds = 0
    const count = () => {
      rounds++
      counting = setImmediate(count)
    }
    let counting = setImmediate(count)
    const seen = await Promise.all(['one', 'one', 'two', undefined].map((owner) => queue(owner).then(() => rounds)))
    clearImmediate(counting)
    expect(new Set(seen).size).toBe(4)
  })

  it('gives each owner a turn', async () => {
    const queue = createParseQueue()
    const order: string[] = []
    const owners = ['many', 'many', 'many', 'few', 'other']
    await Promise.all(owners.map((owner) => queue(owner).then(() => order.push(owner))))
    expect(order).toEqual(['many', 'few', 'other', 'many', 'many'])
    await queue('again')
  })
})
