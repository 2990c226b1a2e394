import {
  Composer,
  type ErrorCode,
  isMap,
  isScalar,
  isSeq,
  type ParsedNode,
  Scalar,
  type YAMLMap,
  type YAMLParseError,
} from 'yaml'
import { MAX_DEPTH, type ScannedYaml, scanYaml, tooDeep, YamlProblem } from './scan.ts'

export type YamlAnswer =
  /** Value, and the line where it begins. */
  | { value: Plain; line: number }
  /** Problem and its line. `isAgent`: the text is a map with a name or a prompt, so it is hardly prose. */
  | { problem: string; line: number; isAgent: boolean }

type Plain = string | number | boolean | null | Plain[] | { [key: string]: Plain }
type Key = ParsedNode | null
type Composed = { root: ParsedNode | null; problem: YamlProblem | undefined }

const MAX_PROBLEM_LENGTH = 200
const MESSAGES: Partial<Record<ErrorCode, string>> = {
  BLOCK_AS_IMPLICIT_KEY: 'a value with a colon in it needs quotes',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line, with a colon after it',
  NON_STRING_KEY: 'a key must be a text',
}

/** Reads one YAML document of plain values. Anything else is a problem with a line, counted from 1. */
export function parseYaml(text: string): YamlAnswer {
  let isAgent = false
  try {
    const scanned = scanYaml(text)
    const { root, problem } = compose(scanned, text)
    const { forbidden, limit } = scanned
    const isBroken = problem !== undefined && problem.offset < (limit?.offset ?? Number.POSITIVE_INFINITY)
    isAgent = !isBroken && isAgentMap(root)
    throwFirst([forbidden, limit, problem])
    return { value: toPlain(root, 1), line: lineAt(text, root?.range[0] ?? 0) }
  } catch (error) {
    if (!(error instanceof YamlProblem)) throw error
    const problem = error.message.slice(0, MAX_PROBLEM_LENGTH).toWellFormed()
    return { problem, line: lineAt(text, error.offset), isAgent }
  }
}

/**
 * Composes the tokens into nodes. Duplicate keys are checked later, because the composer would compare each key with
 * all others.
 */
function compose({ tokens }: ScannedYaml, text: string): Composed {
  const composer = new Composer<ParsedNode>({ uniqueKeys: false, stringKeys: true })
  const [first, second] = [...composer.compose(tokens, true, text.length)]
  const problems = placeProblems(first?.errors ?? [], text)
  if (second !== undefined) {
    problems.push(new YamlProblem(second.range[0], 'a second document begins; only one is allowed'))
  }
  return { root: first?.contents ?? null, problem: firstOf(problems) }
}

/**
 * Converts the composer's errors to problems. A key of several lines that is also a value usually means a line that is
 * indented too far; the problem is placed at its end.
 */
function placeProblems(errors: YAMLParseError[], text: string): YamlProblem[] {
  const startsOf = (wanted: string) => new Set(errors.filter(({ code }) => code === wanted).map(({ pos }) => pos[0]))
  const multiline = startsOf('MULTILINE_IMPLICIT_KEY')
  const misplaced = new Set([...startsOf('BLOCK_AS_IMPLICIT_KEY')].filter((start) => multiline.has(start)))
  return errors
    .filter(({ code, pos }) => code !== 'BLOCK_AS_IMPLICIT_KEY' || !misplaced.has(pos[0]))
    .map(({ code, pos: [start, end], message }) => {
      const isMisplaced = code === 'MULTILINE_IMPLICIT_KEY' && misplaced.has(start)
      if (!isMisplaced) return new YamlProblem(start, MESSAGES[code] ?? message)
      if (/["']/.test(text.charAt(start))) return new YamlProblem(start, 'the quote is closed too late')
      return new YamlProblem(end, 'the line is indented too far, or the value before it needs quotes')
    })
}

const firstOf = (problems: (YamlProblem | undefined)[]): YamlProblem | undefined =>
  problems.filter((problem) => problem !== undefined).sort((one, other) => one.offset - other.offset)[0]

function throwFirst(problems: (YamlProblem | undefined)[]): void {
  const first = firstOf(problems)
  if (first !== undefined) throw first
}

const isAgentMap = (root: ParsedNode | null): boolean =>
  isMap<Key>(root) &&
  root.items.some(({ key }) => isScalar(key) && (key.value === 'name' || key.value === 'system_prompt'))

function toPlain(node: ParsedNode | null, depth: number): Plain {
  if (node === null) return null
  if (isScalar(node)) return toPlainScalar(node)
  if (depth > MAX_DEPTH) throw tooDeep(node.range[0])
  if (isSeq<ParsedNode>(node)) return node.items.map((item) => toPlain(item, depth + 1))
  if (isMap<Key, ParsedNode | null>(node)) return toPlainMap(node, depth)
  throw new YamlProblem(node.range[0], 'aliases are not allowed')
}

function toPlainScalar({ value, range }: Scalar.Parsed): Plain {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new YamlProblem(range[0], 'a number must be finite; put text such as .inf or .nan in quotes')
  }
  // The core schema has no other types.
  return value as Plain
}

/** Converts a map. Uses Object.fromEntries, because assignment treats `__proto__` specially. */
function toPlainMap(map: YAMLMap<Key, ParsedNode | null>, depth: number): Plain {
  const seen = new Set<string>()
  return Object.fromEntries(
    map.items.map(({ key, value }) => {
      const name = keyName(key)
      const offset = key?.range[0] ?? 0
      if (seen.has(name)) throw new YamlProblem(offset, `the key ${JSON.stringify(name.slice(0, 100))} is there twice`)
      seen.add(name)
      return [name, toPlain(value, depth + 1)]
    }),
  )
}

function keyName(key: Key): string {
  const offset = key?.range[0] ?? 0
  if (!isScalar(key) || typeof key.value !== 'string') throw new YamlProblem(offset, 'a key must be a text')
  const isPlain = key.type === Scalar.PLAIN
  if (isPlain && key.value === '') throw new YamlProblem(offset, 'a key is missing before the colon')
  if (isPlain && key.value === '<<') throw new YamlProblem(offset, 'merge keys (<<) are not allowed')
  return key.value
}

function lineAt(text: string, offset: number): number {
  let line = 1
  for (let end = text.indexOf('\n'); end !== -1 && end < offset; end = text.indexOf('\n', end + 1)) line++
  return line
}
