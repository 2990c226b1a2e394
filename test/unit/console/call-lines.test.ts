import { differenceOf, folded, type Line, numbered } from '../../../console/parts/call/lines.ts'

const MARKS = { same: ' ', added: '+', removed: '-' }
const shown = (lines: Line[] | undefined): string[] | undefined =>
  lines?.map(({ kind, text, of, to }) => `${of ?? ''}:${to ?? ''}${MARKS[kind]}${text}`)

it.each<[string, string, string, string[]]>([
  ['equal texts', 'a\nb\n', 'a\nb', ['1:1 a', '2:2 b']],
  ['a new text', '', 'a\nb\n', [':1+a', ':2+b']],
  ['a removed text', 'a', '', ['1:-a']],
  ['a changed line between unchanged ones', 'a\nb\nc', 'a\nx\nc', ['1:1 a', '2:-b', ':2+x', '3:3 c']],
  ['a line that moves', 'a\nb\nc\nd', 'b\nc\na\nd', ['1:-a', '2:1 b', '3:2 c', ':3+a', '4:4 d']],
  ['lines that repeat', 'a\na', 'a\na\na', ['1:1 a', '2:2 a', ':3+a']],
  ['lines that are empty', 'a\n\nb', 'a\nb', ['1:1 a', '2:-', '3:2 b']],
])('compares %s', (_, before, after, expected) => {
  expect(shown(differenceOf(before, after))).toEqual(expected)
})

it('compares the beginning and the end of texts whose middle has too many lines', () => {
  const middle = (mark: string) => Array.from({ length: 2000 }, (_, index) => `${mark} ${index % 3}`)
  const lines = differenceOf(['a', ...middle('x'), 'z'].join('\n'), ['a', ...middle('y'), 'z'].join('\n'))
  expect(lines).toHaveLength(4002)
  expect(shown(lines?.slice(0, 2))).toEqual(['1:1 a', '2:-x 0'])
  expect(shown(lines?.slice(-1))).toEqual(['2002:2002 z'])
})

it.each([
  ['a line of a megabyte', 'x'.repeat(1_000_000)],
  ['too many lines', 'x\n'.repeat(6000)],
])('neither numbers nor compares %s', (_, text) => {
  expect(numbered(text)).toBeUndefined()
  expect(differenceOf('a', text)).toBeUndefined()
  expect(differenceOf(text, 'a')).toBeUndefined()
})

it('numbers the lines of a text', () => {
  expect(shown(numbered('a\n\nb\n'))).toEqual([':1 a', ':2 ', ':3 b'])
  expect(numbered('')).toEqual([])
})

it('folds what is far from a change', () => {
  const text = Array.from({ length: 20 }, (_, index) => `${index + 1}`)
  const lines = differenceOf(text.join('\n'), text.with(9, 'ten').join('\n')) ?? []
  expect(folded(lines).map((line) => (line.kind === 'fold' ? line.count : `${MARKS[line.kind]}${line.text}`))).toEqual([
    6,
    ...[' 7', ' 8', ' 9', '-10', '+ten', ' 11', ' 12', ' 13'],
    7,
  ])
})
