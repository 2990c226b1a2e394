import { subjectOf } from '../../../console/parts/subject.ts'

it.each<[string, Record<string, unknown> | undefined, string]>([
  ['nothing', undefined, ''],
  ['no texts', { a: 1, b: { path: '/x' } }, ''],
  ['a path, before other texts', { content: 'Hello', path: '/hello.txt' }, '/hello.txt'],
  ['the first text, where no name tells more', { first: 'one', second: 'two' }, 'one'],
  ['the first line of a command', { command: '\n  ls -l\nrm x' }, 'ls -l'],
  ['a long text in part', { sql: 'x'.repeat(5000) }, `${'x'.repeat(79)}…`],
])('says what a call works on: %s', (_, given, expected) => {
  expect(subjectOf(given)).toBe(expected)
})
