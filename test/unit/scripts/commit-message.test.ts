import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const hook = fileURLToPath(new URL('../../../.githooks/commit-msg', import.meta.url))
const folder = mkdtempSync(path.join(tmpdir(), 'commit-message-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Returns the hook's refusal of a message, or an empty string if it accepts the message. */
function refusal(...lines: string[]): string {
  const file = path.join(folder, 'COMMIT_EDITMSG')
  writeFileSync(file, `${lines.join('\n')}\n`)
  const { status, stderr } = spawnSync(hook, [file], { encoding: 'utf8' })
  expect(status).toBe(stderr === '' ? 0 : 1)
  return stderr
}

describe('the commit-msg hook', () => {
  it.each([
    ['with a scope', ['feat(sessions): cancel the running turn']],
    ['without one', ['docs: say what a room is']],
    ['that breaks something', ['feat(api)!: drop the old path']],
    ['of 72 characters', [`fix: ${'a'.repeat(67)}`]],
    ['with a body and what the editor adds', ['fix: a', '', 'Because of b; and c.', '# Please enter the message;']],
    ['with a long address in its body', ['fix: a', '', `See https://example.com/${'a'.repeat(100)} for b.`]],
    ['of a merge', ["Merge branch 'a'; whatever"]],
    ['that git writes for a revert', ['Revert "feat: cancel; the running turn"']],
  ])('takes a message %s', (_, lines) => {
    expect(refusal(...lines)).toBe('')
  })

  it.each([
    ['has no type', ['Cancel the running turn'], 'it begins with "type(scope): "'],
    ['has a type of its own', ['feature: cancel the running turn'], 'it begins with "type(scope): "'],
    ['is empty', [''], 'it begins with "type(scope): "'],
    ['has 73 characters', [`fix: ${'a'.repeat(68)}`], 'its first line has 73 characters; 72 are the most'],
    ['joins two ideas', ['fix: one; another'], 'it says one idea: no semicolon'],
    ['has two types', ['docs: a'.replace('a', 'fix: b')], 'it has one type; two changes are two commits'],
    ['ends with a full stop', ['fix: a.'], 'its first line ends without a full stop'],
    ['goes on in its second line', ['fix: a', 'because of b'], 'its second line is empty'],
    ['has long lines', ['fix: a', '', 'b '.repeat(51)], 'its lines have at most 100 characters'],
  ])('refuses a message that %s', (_, lines, problem) => {
    expect(refusal(...lines)).toContain(problem)
  })

  it('reports everything that is wrong, and the message', () => {
    const said = refusal(`One; ${'a'.repeat(80)}.`)
    expect(said.split('\n').slice(1).filter(Boolean)).toHaveLength(4)
    expect(said).toContain('is not as CONTRIBUTING.md asks')
  })
})
