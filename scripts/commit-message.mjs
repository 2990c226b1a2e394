// Checks commit messages. As git's commit-msg hook: node scripts/commit-message.mjs <file>
// For existing commits: node scripts/commit-message.mjs --since <revision>, which checks only commits after the
// revision.
// Runs on any Node, with nothing installed.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'

const MAX_SUBJECT_CHARACTERS = 72
const MAX_BODY_CHARACTERS = 100
const TYPES = ['feat', 'fix', 'refactor', 'perf', 'test', 'docs', 'build', 'ci', 'style', 'chore', 'revert']
const SUBJECT = new RegExp(`^(${TYPES.join('|')})(\\([a-z0-9-]+\\))?!?: (.+)$`)
/** Subjects that git itself writes. */
const OWN = /^(Merge |Revert "|fixup! |squash! |amend! )/

/** Returns a sentence for each problem of a message. Ignores the comments of git's editor. */
export function checkMessage(text) {
  const lines = text.split('\n').filter((line) => !line.startsWith('#'))
  const [subject = '', second = ''] = lines
  if (OWN.test(subject)) return []
  const problems = []
  const what = SUBJECT.exec(subject)?.[3]
  if (what === undefined) {
    problems.push(`it begins with "type(scope): ", where the type is ${TYPES.join(', ')} and the scope may be left out`)
  }
  if (subject.length > MAX_SUBJECT_CHARACTERS) {
    problems.push(`its first line has ${subject.length} characters; ${MAX_SUBJECT_CHARACTERS} are the most`)
  }
  if (subject.includes(';')) problems.push('it says one idea: no semicolon in its first line')
  if (what !== undefined && SUBJECT.test(what)) problems.push('it has one type; two changes are two commits')
  if (/[.,:]$/.test(subject)) problems.push('its first line ends without a full stop, comma or colon')
  if (second.trim() !== '') problems.push('its second line is empty; the reasons begin with the third')
  if (lines.some((line) => line.length > MAX_BODY_CHARACTERS && line.includes(' ') && !line.includes('://'))) {
    problems.push(`its lines have at most ${MAX_BODY_CHARACTERS} characters`)
  }
  return problems
}

function messagesSince(revision) {
  const log = execFileSync('git', ['log', '--format=%B%x00', `${revision}..HEAD`], { encoding: 'utf8' })
  return log
    .split('\0')
    .map((message) => message.trim())
    .filter(Boolean)
}

function main([first, revision]) {
  const messages = first === '--since' ? messagesSince(revision) : [fs.readFileSync(first, 'utf8')]
  let isWrong = false
  for (const message of messages) {
    const problems = checkMessage(message)
    if (problems.length === 0) continue
    isWrong = true
    process.stderr.write(`The message "${message.split('\n')[0]}" is not as CONTRIBUTING.md asks:\n`)
    for (const problem of problems) process.stderr.write(`  ${problem}\n`)
  }
  if (isWrong) process.exit(1)
}

if (process.argv[1] !== undefined && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2))
}
