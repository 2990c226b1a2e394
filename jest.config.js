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
  maxWorkers: 2,
  testTimeout: 60_000,
}
