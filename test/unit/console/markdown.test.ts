import { blocksOf } from '../../../console/parts/markdown.ts'

it('cuts a text into its blocks', () => {
  expect(blocksOf('# A\n\nb\nc\n\n- d\n- e\n\n```\nf\n\ng\n```')?.map(({ source }) => source.trim())).toEqual([
    '# A',
    'b\nc',
    '- d\n- e',
    '```\nf\n\ng\n```',
  ])
})

it('leaves a block as it is that would take long to read', () => {
  const blocks = blocksOf(
    `short\n\n${'_a_b'.repeat(2000)}\n\n${'- x\n'.repeat(3500)}\n\`\`\`\n${'x\n'.repeat(5000)}\`\`\``,
  )
  expect(blocks?.map(({ isMarkdown }) => isMarkdown)).toEqual([true, false, false, true])
})

it.each<[string, string]>([
  ['is too long', 'word '.repeat(100_000)],
  ['has too many blocks', 'a\n\n'.repeat(2000)],
  ['has more quotes in each other than can be read', '>'.repeat(20_000)],
  ['has more lists in each other than can be read', '1. '.repeat(15_000)],
])('reads no text that %s', (_, text) => {
  expect(blocksOf(text)).toBeUndefined()
})
