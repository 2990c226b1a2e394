import { execFile } from 'node:child_process'

const LIMIT_MS = 270_000
const END_OF_COMMAND = '--- end of command'

/** A command of the page, and the lines that it shows below it. */
type Command = { text: string; shown: string[] }
export type Section = { title: string; commands: Command[] }

/** Reads the commands after `$ ` in a page's console blocks, by section. */
export function readSections(page: string): Section[] {
  return page.split(/^#+ (?=\S)/m).flatMap((section) => {
    const [title = ''] = section.split('\n')
    const blocks = [...section.matchAll(/^(`{3,})console\n(.*?)^\1$/gms)].map(([, , block = '']) => block)
    return blocks.length === 0 ? [] : [{ title, commands: blocks.flatMap(readCommands) }]
  })
}

function readCommands(block: string): Command[] {
  const commands: Command[] = []
  let isOpen = false
  let end: string | undefined
  for (const line of block.split('\n')) {
    const current = commands.at(-1)
    if (!isOpen && line.startsWith('$ ')) commands.push({ text: line.slice(2), shown: [] })
    else if (isOpen) Object.assign(current ?? {}, { text: `${current?.text}\n${line}` })
    else if (line !== '') current?.shown.push(line)
    const text = commands.at(-1)?.text ?? ''
    end = /<<'?(\w+)'?/.exec(text)?.[1]
    isOpen = end === undefined ? text.endsWith('\\') || isQuoteOpen(text) : !text.endsWith(`\n${end}`)
  }
  return commands
}

/** Tells whether a quoted text goes on in the next line. */
function isQuoteOpen(text: string): boolean {
  let open = ''
  for (const [quote] of text.matchAll(/\\.|['"]/g)) {
    if (quote.startsWith('\\')) continue
    if (open === '') open = quote
    else if (open === quote) open = ''
  }
  return open !== ''
}

/** Returns a pattern for a shown line, in which `…`, ids, keys, times and durations may differ. */
const patternOf = (line: string): RegExp =>
  new RegExp(
    line
      .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      .replace(/(_)?[0-9a-f]{32}/g, '$1[0-9a-f]{32}')
      .replace(/[0-9a-f]{8}-(?=…|[-0-9a-f]{27})([-0-9a-f]{27})?/g, '[0-9a-f]{8}-[-0-9a-f]*')
      .replace(/(ask|inv)_[0-9a-f]+/g, '$1_[0-9a-f]+')
      .replace(/\d{4}-\d\d-\d\dT[\d:]+\\\.\d{3}Z/g, '[-\\d]+T[:\\d]+\\.\\d{3}Z')
      .replace(/(duration_ms":)\d+/g, '$1\\d+')
      // Null while Temporal takes longer than an answer waits for it.
      .replace(/(next_trigger_at":)("[^"]+")/g, '$1(?:$2|null)')
      .replaceAll('…', '[^\\n]*'),
  )

const run = (script: string, cwd: string): Promise<string> =>
  new Promise((resolve) => {
    execFile('bash', ['-c', script], { cwd, timeout: LIMIT_MS }, (_error, stdout, stderr) => resolve(stdout + stderr))
  })

/**
 * Returns the script of a section's commands. A command after a pause is repeated until it shows what the page shows: no
 * pause is long enough on a busy machine.
 */
function toScript({ commands }: Section): string[] {
  return commands.map(({ text, shown }, index) => {
    if (PAUSE.test(text)) return ':'
    return PAUSE.test(commands[index - 1]?.text ?? '') ? repeated(text, shown) : text
  })
}

const PAUSE = /^sleep \d+$/

function repeated(text: string, shown: string[]): string {
  const patterns = shown.filter((line) => line !== '…').map((line) => patternOf(line).source)
  const enough = [...new Set(patterns)].map((pattern) => {
    const count = patterns.filter((other) => other === pattern).length
    return `[ "$(grep -cP '${pattern}' <<<"$SHOWN")" -ge ${count} ]`
  })
  return `for _ in {1..200}; do SHOWN=$(${text}\n); ${enough.join(' && ')} && break; sleep 0.3; done; echo "$SHOWN"`
}

/**
 * Runs the commands of sections in one shell, in a folder. `others` replaces texts that differ here. Returns the output
 * of each section together with the next one's, because a stream in the background may go on.
 */
export async function carryOut(
  sections: Section[],
  cwd: string,
  others: [string, string][],
): Promise<Map<string, string>> {
  const commands = sections.flatMap((section) => toScript(section).map((text) => ({ title: section.title, text })))
  const script = commands.map(({ text }) => `${text}\necho; echo '${END_OF_COMMAND}' $?`).join('\n')
  const here = others.reduce((text, [there, here]) => text.replaceAll(there, here), script)
  // Streams in the background last until then.
  const written = await run(`trap 'kill $(jobs -p)' EXIT\n${here}`, cwd)
  const outputs = new Map<string, string>()
  for (const [index, output] of written.split(END_OF_COMMAND).entries()) {
    const title = commands[index]?.title ?? 'after the last command'
    outputs.set(title, (outputs.get(title) ?? '') + output)
  }
  return new Map(
    sections.map(({ title }, index) => [
      title,
      `${outputs.get(title)}${outputs.get(sections[index + 1]?.title ?? '') ?? ''}`,
    ]),
  )
}

/** Expects that an output has the lines that a section shows. */
export function expectShown({ commands }: Section, output: string | undefined): void {
  for (const line of commands.flatMap(({ shown }) => shown).filter((line) => line !== '…'))
    expect(output).toMatch(patternOf(line))
}
