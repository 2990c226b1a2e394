import { changedWords, type Piece } from '../../../console/views/compare/changed-words.ts'

const marked = (pieces: Piece[]): string =>
  pieces.map(({ text, isChanged }) => (isChanged ? `[${text}]` : text)).join('')

it.each<[string, string, string, string, string]>([
  ['nothing', 'a b', 'a b', 'a b', 'a b'],
  ['a word', 'the red door', 'the blue door', 'the [red] door', 'the [blue] door'],
  ['what was added', 'one three', 'one two three', 'one three', 'one [two ]three'],
  ['what was taken out at the end', 'one two', 'one', 'one[ two]', 'one'],
  ['words between equal ones', 'a x c y e', 'a b c d e', 'a [x] c [y] e', 'a [b] c [d] e'],
  ['lines', 'a\nb', 'a\nc', 'a\n[b]', 'a\n[c]'],
  ['everything', 'a', 'b', '[a]', '[b]'],
  ['from nothing', '', 'a b', '', '[a b]'],
])('marks %s', (_, a, b, left, right) => {
  const changed = changedWords(a, b)
  expect([marked(changed.a), marked(changed.b)]).toEqual([left, right])
})

it('gives up on the middle of very long texts', () => {
  const long = (word: string) => `start ${`${word} `.repeat(3000)}end`
  const { a, b } = changedWords(long('x'), long('y'))
  expect([a.map(({ isChanged }) => isChanged), b.length]).toEqual([[false, true, false], 3])
})
