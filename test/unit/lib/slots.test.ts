import { createSlots } from '../../../lib/threads/slots.ts'

const never = new AbortController().signal

describe('slots', () => {
  it('refuse the newest job of the largest owner when their queue is full', async () => {
    const slots = createSlots(1, 60_000, { maxWaiting: 4 })
    const log: string[] = []
    const enter = (owner: string, name: string) =>
      slots.enter({ owner }, never).then((hasEntered) => log.push(`${name} ${hasEntered ? 'in' : 'refused'}`))
    await enter('large', 'a')
    const waiting = ['b', 'c', 'd', 'e'].map((name) => enter('large', name))
    waiting.push(enter('large', 'f'), enter('small', 'g'), enter('small', 'h'), enter('small', 'i'))
    await new Promise(setImmediate)
    // The one that comes is refused where its owner has as many waiting.
    expect(log.sort()).toEqual(['a in', 'd refused', 'e refused', 'f refused', 'i refused'])
    for (const owner of ['large', 'large', 'small', 'large', 'small']) {
      slots.leave({ owner })
      await new Promise(setImmediate)
    }
    expect(log.slice(5)).toEqual(['b in', 'g in', 'c in', 'h in'])
    await Promise.all(waiting)
  })
})
