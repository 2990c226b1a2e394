import { exitCodeOf, type Result, resultOf } from '../../../console/parts/call/results.ts'

const rows = (columns: string[], ...found: unknown[][]) => ({ columns, rows: found })

it.each<[string, unknown, Result]>([
  ['nothing', undefined, { kind: 'nothing' }],
  ['an empty text', '', { kind: 'nothing' }],
  ['a text', 'sunny', { kind: 'text', text: 'sunny' }],
  ['a number', 42, { kind: 'json', value: 42 }],
  ['values', { result: 42 }, { kind: 'values', values: { result: 42 } }],
  [
    'the output of a command',
    { exit_code: 3, stdout: 'a', stderr: 'b', stdout_omitted_bytes: 9 },
    { kind: 'command', exitCode: 3, stdout: 'a', stderr: 'b', others: { stdout_omitted_bytes: 9 } },
  ],
  [
    'a part of a file, from its line',
    { path: '/a', encoding: 'text', content: 'x', first_line: 7, total_lines: 9, next_offset: null },
    { kind: 'file', path: '/a', text: 'x', first: 7, others: { total_lines: 9 } },
  ],
  [
    'a binary file by its values',
    { path: '/a', encoding: 'base64', content: 'AA' },
    { kind: 'values', values: { path: '/a', encoding: 'base64', content: 'AA' } },
  ],
  [
    'rows of a database that left some out',
    { columns: ['a', 'a'], rows: [[1, null]], row_count: 1, truncated: true },
    { kind: 'rows', rows: rows(['a', 'a'], [1, null]), others: { truncated: true } },
  ],
  [
    'no rows',
    { columns: ['a'], rows: [], row_count: 0, truncated: false },
    { kind: 'rows', rows: rows(['a']), others: {} },
  ],
  [
    'rows of another shape as values',
    { columns: ['a'], rows: 'none' },
    { kind: 'values', values: { columns: ['a'], rows: 'none' } },
  ],
  [
    'the only list of objects as rows, by the fields of all',
    { matches: [{ line: 1 }, { text: 'x' }], next_offset: null, note: 'more' },
    { kind: 'rows', rows: rows(['line', 'text'], [1, undefined], [undefined, 'x']), others: { note: 'more' } },
  ],
  ['a list of objects', [{ a: 1 }], { kind: 'rows', rows: rows(['a'], [1]), others: {} }],
  ['an empty list', { matches: [] }, { kind: 'values', values: { matches: [] } }],
  ['a list of other values', [1, 'a'], { kind: 'json', value: [1, 'a'] }],
])('reads %s', (_, value, expected) => {
  expect(resultOf(value)).toEqual(expected)
})

it('shows objects with many fields as JSON', () => {
  const wide = [Object.fromEntries([...'abcdefghijklm'].map((name) => [name, 1]))]
  expect(resultOf(wide)).toEqual({ kind: 'json', value: wide })
})

it('leaves out what the arguments have said', () => {
  const given = { path: '/a', todos: [{ content: 'x' }], a: 1 }
  expect(resultOf({ path: '/a', size_bytes: 3, a: 2 }, given)).toEqual({
    kind: 'values',
    values: { size_bytes: 3, a: 2 },
  })
  expect(resultOf({ todos: [{ content: 'x' }] }, given)).toEqual({ kind: 'nothing' })
})

it.each([
  ['{"exit_code":3,"stdout":""}', 3],
  ['{ "exit_code": 0 }', 0],
  ['{"stdout":"{\\"exit_code\\":3}"}', undefined],
  ['exit_code: 3', undefined],
])('reads the exit code of %s', (text, code) => {
  expect(exitCodeOf(text)).toBe(code)
})
