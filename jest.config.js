/** Whether a core takes twice as long for plain arithmetic as the machines for which the tests' time limits are made. */
function isSlow() {
  const times = [1, 2].map(() => {
    const startedAt = performance.now()
    for (let sum = 0, count = 0; count < 1e7; count++) sum = (sum * 31 + count) | 0
    return performance.now() - startedAt
  })
  return Math.min(...times) > 50
}

export default {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/.data/'],
  extensionsToTreatAsEsm: ['.ts'],
  // Node runs TypeScript itself.
  transform: {},
  testEnvironment: '<rootDir>/test/support/jest/native-environment.cjs',
  runtime: '<rootDir>/test/support/jest/native-runtime.cjs',
  randomize: true,
  testSequencer: '<rootDir>/test/support/jest/shuffle-sequencer.cjs',
  // Most files wait half of their time, so two cores have work for four. Slow cores are busy with two.
  maxWorkers: isSlow() ? 2 : 4,
  // What a test file has loaded is never quite given back.
  workerIdleMemoryLimit: '1GB',
  // The longest test takes a quarter of this on a quiet machine. A test that hangs ends its file, and not the run.
  testTimeout: 120_000,
}
