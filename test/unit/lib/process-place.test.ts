import { hasEnded, processPlace } from '../../../lib/process-place.ts'

const own = processPlace ?? ''
const [boot, namespace, pid, start] = own.split('/')

it.each([
  ['this process', own, false],
  ['an earlier process with the same id', `${boot}/${namespace}/${pid}/${Number(start) - 1}`, true],
  ['a process whose id nobody has', `${boot}/${namespace}/${2 ** 22 + 1}/${start}`, true],
  ['a process of another container', `${boot}/pid:[1]/${pid}/1`, false],
  ['a process of another machine', `other/${namespace}/${pid}/1`, false],
  ['text without a place', 'nowhere', false],
])('%s', (_, place, isEnded) => {
  expect(start).toMatch(/^\d+$/)
  expect(hasEnded(place)).toBe(isEnded)
})
