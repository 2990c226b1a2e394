import { type Given, shapeOf } from '../../../console/parts/call/shapes.ts'

it.each<[string, string, Given, object]>([
  [
    'a file that is written',
    'write_file',
    { path: '/a.md', content: 'Hi', encoding: 'text' },
    { kind: 'file', path: '/a.md', text: 'Hi', others: {} },
  ],
  [
    'a binary file by its values',
    'write_file',
    { path: '/a.png', content: 'AAAA', encoding: 'base64' },
    { kind: 'values', others: { path: '/a.png', content: 'AAAA', encoding: 'base64' } },
  ],
  [
    'an edit',
    'edit_file',
    { path: '/a.md', old_text: 'a', new_text: '' },
    { kind: 'edit', path: '/a.md', before: 'a', after: '', others: {} },
  ],
  [
    'an edit by a tool of a server',
    'str_replace',
    { file_path: '/a.md', old_string: 'a', new_string: 'b', replace_all: true },
    { kind: 'edit', path: '/a.md', before: 'a', after: 'b', others: { replace_all: true } },
  ],
  [
    'SQL with its database and its values',
    'sql_execute',
    { database: 'shop', sql: 'DELETE FROM t WHERE id = ?', params: [1] },
    { kind: 'sql', database: 'shop', text: 'DELETE FROM t WHERE id = ?', others: { params: [1] } },
  ],
  ['a query of a database', 'query_database', { query: 'SELECT 1' }, { kind: 'sql', text: 'SELECT 1', others: {} }],
  ['a query of something else', 'search', { query: 'cats' }, { kind: 'text', name: 'query', text: 'cats' }],
  [
    'a command',
    'bash',
    { command: 'ls\ncat x', timeout_secs: 5 },
    { kind: 'command', text: 'ls\ncat x', others: { timeout_secs: 5 } },
  ],
  ['a single text', 'ask_user', { question: 'Which?' }, { kind: 'text', name: 'question', text: 'Which?' }],
  ['a path alone', 'read_file', { path: '/a.md' }, { kind: 'text', name: 'path', text: '/a.md' }],
  ['other values', 'add', { a: 1, b: { c: 2 } }, { kind: 'values', others: { a: 1, b: { c: 2 } } }],
  [
    'texts where others are expected',
    'bash',
    { command: 7, sql: null },
    { kind: 'values', others: { command: 7, sql: null } },
  ],
  ['nothing', 'list_schedules', {}, { kind: 'values', others: {} }],
])('reads %s', (_, tool, given, expected) => {
  expect(shapeOf(tool, given)).toEqual(expected)
})
