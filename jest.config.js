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
  // A file may have a dozen processes of its own; with more at once heartbeats come too late.
  maxWorkers: 2,
  // What a test file has loaded is never quite given back.
  workerIdleMemoryLimit: '1GB',
  // Waits have a limit of their own, which is far beyond what they take.
  testTimeout: 600_000,
}
