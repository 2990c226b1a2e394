import { atMostEvery } from '../../../lib/at-most-every.ts'
import { sleep } from '../../../lib/sleep.ts'
import { waitFor } from '../../support/http.ts'

it('many calls are two runs, one at once and one afterwards, and a later call is another one', async () => {
  let runs = 0
  const { call: notify } = atMostEvery(50, () => void runs++)
  for (let count = 0; count < 1000; count++) notify()
  expect(runs).toBe(1)
  await waitFor(async () => runs === 2, 'the second run')
  await sleep(200)
  expect(runs).toBe(2)
  notify()
  expect(runs).toBe(3)
})
