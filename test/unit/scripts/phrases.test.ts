import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('../../../scripts/phrases.mjs', import.meta.url))
const folder = mkdtempSync(path.join(tmpdir(), 'phrases-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Checks a repository with one file. Returns the exit code and what was printed. */
function check(name: string, text: string): { status: number | null; stderr: string } {
  const repository = mkdtempSync(path.join(folder, 'repository-'))
  spawnSync('git', ['init', '--quiet', repository])
  writeFileSync(path.join(repository, name), text)
  const { status, stderr } = spawnSync(process.execPath, [script], { cwd: repository, encoding: 'utf8' })
  return { status, stderr }
}

describe('the check of phrases', () => {
  it.each([
    ['page.md', 'The limit.\n\nThe process is the one that\nruns the step.\n', 3],
    ['code.ts', '/**\n * Returns the event, or the one\n * that follows it.\n */\n', 2],
    ['code.ts', "throw new Error('name: is no name')\n", 1],
    ['query.sql', '-- For whoever comes first.\n', 1],
    ['page.md', 'It is small. What is sent twice counts once.\n', 1],
  ])('finds a phrase in %s: %j', (name, text, line) => {
    const { status, stderr } = check(name, text)
    expect(status).toBe(1)
    expect(stderr).toMatch(new RegExp(`^${name}:${line} ".+": write .+\n1 phrases to avoid\n$`))
  })

  it.each([
    ['page.md', 'There is no limit. What is a turn? The queue is no longer full.\n'],
    ['page.md', '## What it is\n\nA service.\n'],
    ['page.md', 'There is none.\n\n```python\nif line is None: break\n```\n'],
    ['picture.svg', 'whoever'],
  ])('allows %s: %j', (name, text) => {
    expect(check(name, text)).toEqual({ status: 0, stderr: '' })
  })

  it('says so when it is not run in a repository', () => {
    const { status, stderr } = spawnSync(process.execPath, [script], { cwd: folder, encoding: 'utf8' })
    expect(status).toBe(0)
    expect(stderr).toBe('The English was not checked: git lists no files here\n')
  })
})
