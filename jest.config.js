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
  // Many tests wait for most of their time.
  maxWorkers: 3,
  // What a test file has loaded is never quite given back.
  workerIdleMemoryLimit: '1GB',
  // Waits have a limit of their own, which is far beyond what they take.
  testTimeout: 600_000,
}
