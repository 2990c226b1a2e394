export default {
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/.data/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' }, module: { type: 'es6' } },
    ],
  },
  randomize: true,
  testSequencer: '<rootDir>/test/support/shuffle-sequencer.cjs',
  // A file may have a dozen processes of its own; with more at once heartbeats come too late.
  maxWorkers: 2,
  // What a test file has loaded is never quite given back.
  workerIdleMemoryLimit: '1GB',
  // Waits have a limit of their own, which is far beyond what they take.
  testTimeout: 600_000,
}
