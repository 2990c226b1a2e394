import { throttle } from '../../../domain/mcp-servers/throttle.ts'
import { sleep } from '../../../lib/sleep.ts'
import { waitFor } from '../../support/http.ts'

it('many calls are two runs, one at once and one afterwards, and a later call is another one', async () => {
  let runs = 0
  const tell = throttle(async () => void runs++, 50)
  for (let count = 0; count < 1000; count++) tell()
  expect(runs).toBe(1)
  await waitFor(async () => runs === 2, 'the second run')
  await sleep(200)
  expect(runs).toBe(2)
  tell()
  expect(runs).toBe(3)
})
