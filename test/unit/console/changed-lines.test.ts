import { changedLines } from '../../../console/views/contents/changed-lines.ts'

it.each<[string, string, string, string[]]>([
  ['nothing', 'a\nb', 'a\nb', []],
  ['a line in the middle', 'a\nb\nc', 'a\nX\nc', ['X']],
  ['lines that were added at the end', 'a', 'a\nb\nc', ['b', 'c']],
  ['a line that was added at the beginning', 'a\nb', 'X\na\nb', ['X']],
  ['a line that was taken out', 'a\nb\nc', 'a\nc', []],
  ['one of several equal lines', 'a\na\na', 'a\na\na\na', ['a']],
  ['everything', 'a\nb', 'c', ['c']],
  ['from nothing', '', 'a\nb', ['a', 'b']],
])('finds %s', (_, before, after, changed) => {
  const { from, to } = changedLines(before, after)
  expect(after.split('\n').slice(from, to)).toEqual(changed)
  expect(to).toBeGreaterThanOrEqual(from)
})
