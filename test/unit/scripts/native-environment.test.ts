import { createRequire } from 'node:module'
import { deepCyclicCopy } from 'jest-util'

const require = createRequire(import.meta.url)
const Environment = require('../../support/jest/native-environment.cjs')

/** Makes an error that refers to more objects in a row than a stack has frames. */
function deepError(cause?: Error): Error {
  let deep: object = {}
  for (let level = 0; level < 20_000; level++) deep = { deep }
  return Object.assign(new Error('lost', { cause }), { deep, code: 'ECONNRESET' })
}

describe('an error that refers to a deep graph of objects', () => {
  it.each(['test_fn_failure', 'hook_failure', 'error'])('of an event %s keeps what Jest can copy', (name) => {
    const error = deepError(deepError())
    expect(() => deepCyclicCopy(error)).toThrow(RangeError)
    Environment.prototype.handleTestEvent({ name, error })
    expect(deepCyclicCopy(error)).toMatchObject({ message: 'lost', code: 'ECONNRESET' })
    expect(error.cause).toMatchObject({ message: 'lost', code: 'ECONNRESET' })
  })

  it('is left alone while the test goes on', () => {
    const error = deepError()
    Environment.prototype.handleTestEvent({ name: 'test_start', error })
    expect(error).toHaveProperty('deep')
  })
})
