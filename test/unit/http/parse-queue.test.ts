import { createParseQueue, type ParseQueue } from '../../../api/http/parse-queue.ts'

/** Takes a turn of several steps, and notes the owner at the beginning and at the end of each. */
async function work(queue: ParseQueue, owner: string, notes: string[]): Promise<void> {
  const turn = queue(owner)
  for (const place of ['begins', 'ends']) {
    await turn.step()
    notes.push(`${owner} ${place}`)
  }
  turn.end()
}

describe('a queue for parsing', () => {
  it('lets one body be worked on at a time, and each owner in turn', async () => {
    const queue = createParseQueue()
    const notes: string[] = []
    await Promise.all(['many', 'many', 'many', 'few', 'other'].map((owner) => work(queue, owner, notes)))
    const order = ['many', 'many', 'few', 'other', 'many']
    expect(notes).toEqual(order.flatMap((owner) => [`${owner} begins`, `${owner} ends`]))
  })

  it('gives the event loop a round before each step', async () => {
    const turn = createParseQueue()('one')
    const rounds: number[] = []
    let round = 0
    const count = () => {
      round++
      counting = setImmediate(count)
    }
    let counting = setImmediate(count)
    for (let step = 0; step < 3; step++) {
      await turn.step()
      rounds.push(round)
    }
    clearImmediate(counting)
    expect(new Set(rounds).size).toBe(3)
  })

  it('is free again after a turn, even a turn without steps', async () => {
    const queue = createParseQueue()
    queue('one').end()
    const notes: string[] = []
    await work(queue, 'two', notes)
    await work(queue, 'three', notes)
    expect(notes).toHaveLength(4)
  })
})
