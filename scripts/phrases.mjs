// Checks the English of everything that people read: docs, comments, error sentences and test names.
// `node scripts/phrases.mjs [path…]` prints each place with a phrase to avoid and exits with 1 if there is one.
// Runs on any Node, with nothing installed.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Phrases that a reader has to translate, with what to write instead. */
const PHRASES = [
  [/(?<!\bthere )\bis no (?!longer\b|more\b|less\b|different\b)/i, '"is not a …", or a verb'],
  // Lower case: Python has `is None`.
  [/(?<!\b[Tt]here )\b(?:is|are|was|were) none\b/, '"does not exist", "has no …" or "is not one"'],
  [/\bone that\b/i, 'the noun'],
  [/\bwhoever\b/i, 'who it is: the caller, the user, the process'],
  [/\bof which\b/i, 'a second sentence, or "whose"'],
  [/\bas far as\b/i, '"up to", "where" or "if"'],
  [/\bas \w+ as (?:it|they|one) (?:can|could)\b/i, 'the limit'],
  [/\bthat of\b/i, "the noun, or a possessive: the owner's"],
  [/\bthose (?:of|that)\b/i, 'the noun'],
  [/\beach time that\b/i, '"whenever" or "for each"'],
  [/\bhad to be\b/i, '"must be"'],
  // At the start of a sentence, unless it is a question.
  [/(?:^|[.:;] )What (?:is|was|are|were|has|had|it|they|an?|the)\b[^.?]*\.(?=\s|$)/, 'a concrete subject'],
]

const READ = /\.(?:md|ts|mjs|cjs|js|sql|prisma|css|html|yml|yaml)$/
/** Recorded, generated, or the list of phrases itself. */
const SKIPPED =
  /^(?:test\/fixtures|docs\/configuration\.md|client\/src\/generated|prisma\/generated|.*\bphrases\.(?:mjs|test\.ts)$)/

/** Returns `{line, phrase, instead}` for each phrase to avoid. A phrase may go on in the next line of a comment. */
export function findPhrases(text) {
  const joined = text.replace(
    /\n[ \t]*(?:\*(?!\/)|\/\/|#|--|>)?[ \t]*(?=\S)/g,
    (gap) => ` ${'\u0001'.repeat(gap.length - 1)}`,
  )
  const starts = [...text.matchAll(/\n/g)].map(({ index }) => index)
  const lineAt = (position) => starts.filter((start) => start < position).length + 1
  const readable = joined.replaceAll('\u0001', '')
  const positions = [...joined].flatMap((character, index) => (character === '\u0001' ? [] : [index]))
  return PHRASES.flatMap(([phrase, instead]) =>
    [...readable.matchAll(new RegExp(phrase.source, `g${phrase.flags}`))].map((match) => ({
      line: lineAt((positions[match.index] ?? 0) + 1),
      phrase: match[0].trim().slice(0, 60),
      instead,
    })),
  ).sort((left, right) => left.line - right.line)
}

function main(paths) {
  // The checkout may belong to another user, as in a container.
  const list = ['-c', 'safe.directory=*', 'ls-files', '--cached', '--others', '--exclude-standard', ...paths]
  const { status, stdout, error } = spawnSync('git', list, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (error !== undefined || status !== 0) {
    process.stderr.write('The English was not checked: git lists no files here\n')
    return
  }
  const files = stdout.split('\n').filter((file) => READ.test(file) && !SKIPPED.test(file) && fs.existsSync(file))
  const found = files.flatMap((file) => findPhrases(fs.readFileSync(file, 'utf8')).map((place) => ({ file, ...place })))
  for (const { file, line, phrase, instead } of found) {
    process.stderr.write(`${file}:${line} "${phrase}": write ${instead}\n`)
  }
  if (found.length > 0) process.stderr.write(`${found.length} phrases to avoid\n`)
  process.exit(found.length > 0 ? 1 : 0)
}

if (process.argv[1] !== undefined && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2))
}
