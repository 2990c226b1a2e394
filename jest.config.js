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
  // Most files wait half of their time, so two cores have work for four.
  maxWorkers: 4,
  // What a test file has loaded is never quite given back.
  workerIdleMemoryLimit: '1GB',
  // The longest test takes a quarter of this on a quiet machine. A test that hangs ends its file, and not the run.
  testTimeout: 120_000,
}
