import { parseMarkdown } from '../../../embed/src/markdown.ts'
import type { Piece } from '../../../embed/src/pieces.ts'

/** Returns pieces in a short form: tags with their children, and the target of a link. */
const shortOf = (piece: Piece): unknown =>
  typeof piece === 'string'
    ? piece
    : [piece.href ?? (piece.start ? `${piece.tag} ${piece.start}` : piece.tag), ...piece.children.map(shortOf)]

const parsed = (text: string) => parseMarkdown(text).map(shortOf)

it.each<[string, string, unknown[]]>([
  [
    'paragraphs',
    'One\ntwo\n\nthree',
    [
      ['p', 'One\ntwo'],
      ['p', 'three'],
    ],
  ],
  [
    'emphasis, also in each other',
    '**a *b* c** _d_ __e__ ~~f~~ ***g***',
    [
      [
        'p',
        ['strong', 'a ', ['em', 'b'], ' c'],
        ' ',
        ['em', 'd'],
        ' ',
        ['strong', 'e'],
        ' ',
        ['s', 'f'],
        ' ',
        ['strong', ['em', 'g']],
      ],
    ],
  ],
  [
    'stars and underscores that mean nothing',
    '2 * 3 * 4, snake_case_name and a*',
    [['p', '2 * 3 * 4, snake_case_name and a*']],
  ],
  ['code, in which nothing is marked', '`**a**` and ``b`c``', [['p', ['code', '**a**'], ' and ', ['code', 'b`c']]]],
  ['escapes', String.raw`\*a\* and \[b\](c)`, [['p', '*a* and [b](c)']]],
  [
    'a block of code',
    '```ts\nconst a = 1\n\n# b\n```\nafter',
    [
      ['pre', ['code', 'const a = 1\n\n# b']],
      ['p', 'after'],
    ],
  ],
  ['a block of code that still grows', '~~~\na\n```', [['pre', ['code', 'a\n```']]]],
  [
    'a heading as a bold paragraph',
    '## A *b* ##\nc',
    [
      ['p', ['strong', 'A ', ['em', 'b']]],
      ['p', 'c'],
    ],
  ],
  ['rules and quotes', 'a\n\n---\n> b\n> - c', [['p', 'a'], ['hr'], ['blockquote', ['p', 'b'], ['ul', ['li', 'c']]]]],
  [
    'a list after a text',
    'a:\n- b\n- **c**\n\nd',
    [
      ['p', 'a:'],
      ['ul', ['li', 'b'], ['li', ['strong', 'c']]],
      ['p', 'd'],
    ],
  ],
  [
    'lists in lists',
    '3. a\n   - b\n     c\n   - d\n\n4. e\n\n   f',
    [['ol 3', ['li', 'a', ['ul', ['li', 'b\nc'], ['li', 'd']]], ['li', 'e', ['p', 'f']]]],
  ],
  ['code in a list', '- a\n\n  ```\n  b\n  ```\n- c', [['ul', ['li', 'a', ['pre', ['code', 'b']]], ['li', 'c']]]],
  [
    'two kinds of lists',
    '- a\n1. b',
    [
      ['ul', ['li', 'a']],
      ['ol', ['li', 'b']],
    ],
  ],
])('reads %s', (_, text, expected) => {
  expect(parsed(text)).toEqual(expected)
})

it.each<[string, unknown[]]>([
  ['[a](https://b.example/c_(d))', ['https://b.example/c_(d)', 'a']],
  ['[**a**](mailto:b@c.example "title")', ['mailto:b@c.example', ['strong', 'a']]],
  ['![a](https://b.example/c.png)', ['https://b.example/c.png', 'a']],
  ['<https://b.example/>', ['https://b.example/', 'https://b.example/']],
  ['https://b.example/a?b=1', ['https://b.example/a?b=1', 'https://b.example/a?b=1']],
])('makes %s a link', (text, expected) => {
  expect(parsed(text)).toEqual([['p', expected]])
})

it.each([
  '[a](javascript:alert(1))',
  '[a](JaVaScRiPt:alert(1))',
  '[a](java\tscript:alert)',
  '[a](data:text/html,b)',
  '[a](vbscript:b)',
  '[a](/b)',
  '[a](//b.example)',
  '[a](https://)',
  '<javascript:alert(1)>',
  '<script>alert(1)</script>',
  '<a href=x onclick=y>',
  '&lt;b&gt;',
  '| a | b |',
])('leaves %s a text', (text) => {
  expect(parsed(text)).toEqual([['p', text]])
})

it('shows what would deceive', () => {
  expect(parsed('a\u202eb\u001b[31mc\u0000')).toEqual([['p', 'a⟨U+202E⟩bc\ufffd']])
})

it.each<[string, string]>([
  ['stars', '*'.repeat(200_000)],
  ['stars and letters', '*a **b '.repeat(20_000)],
  ['underscores', '_a_b'.repeat(25_000)],
  ['backticks', '`a``b'.repeat(20_000)],
  ['brackets', '['.repeat(90_000)],
  ['links that do not end', '[a](b'.repeat(19_000)],
  ['paragraphs of stars', `${'**a *b _c `d [e]('.repeat(230)}\n\n`.repeat(24)],
  ['quotes in each other', '>'.repeat(90_000)],
  ['lists in each other', '1. '.repeat(30_000)],
  ['deep lists', Array.from({ length: 400 }, (_, depth) => `${' '.repeat(depth)}- a`).join('\n')],
  ['many items', '- a\n'.repeat(25_000)],
  ['many fences', '```\n'.repeat(25_000)],
  ['many blank lines', '- a\n\n\n'.repeat(16_000)],
])('reads many %s', (_, text) => {
  expect(JSON.stringify(parseMarkdown(text)).length).toBeLessThan(text.length * 20)
})
