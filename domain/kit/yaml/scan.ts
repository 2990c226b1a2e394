import { CST, Lexer, Parser } from 'yaml'

/** Problem in a text, with its offset. */
export class YamlProblem extends Error {
  override name = 'YamlProblem'
  readonly offset: number

  constructor(offset: number, message: string) {
    super(message)
    this.offset = offset
  }
}

export type ScannedYaml = {
  tokens: CST.Token[]
  /** First use of a forbidden YAML feature, refused even if nothing else is wrong. */
  forbidden: YamlProblem | undefined
  /** Place where the scan stopped because the text is too deep or too large. `tokens` end there. */
  limit: YamlProblem | undefined
}

export const MAX_DEPTH = 64
/** Maximum number of words, marks and spaces. Scanning them takes half a second and 50 MB. */
const MAX_PIECES = 200_000
/** Entries on the parser's stack that are not nesting: the document itself, and a scalar. */
const NOT_NESTED = 2

const FORBIDDEN: Partial<Record<CST.TokenType, string>> = {
  anchor: 'anchors, aliases and tags are not allowed; put text that begins with & in quotes',
  alias: 'anchors, aliases and tags are not allowed; put text that begins with * in quotes',
  tag: 'anchors, aliases and tags are not allowed; put text that begins with ! in quotes',
  'directive-line': 'directives (lines that begin with %) are not allowed',
}

/** Scans the text's syntax without recursion. Throws YamlProblem for an unclosed quote or bracket, at its opening. */
export function scanYaml(text: string): ScannedYaml {
  const parser = new Parser()
  const scanned: ScannedYaml = { tokens: [], forbidden: undefined, limit: undefined }
  const brackets = createBrackets()
  let pieces = 0
  let isScalar = false
  for (const piece of new Lexer().lex(text)) {
    const { offset } = parser
    const type = isScalar ? 'scalar' : CST.tokenType(piece)
    isScalar = piece === CST.SCALAR && !isScalar
    checkQuotes(piece, type, offset)
    brackets.see(piece, type, offset)
    const refusal = type === null ? undefined : FORBIDDEN[type]
    if (refusal !== undefined) scanned.forbidden ??= new YamlProblem(offset, refusal)
    scanned.tokens.push(...parser.next(piece))
    if (parser.stack.length > MAX_DEPTH + NOT_NESTED) scanned.limit = tooDeep(offset)
    if (++pieces > MAX_PIECES) scanned.limit = new YamlProblem(offset, TOO_LARGE)
    if (scanned.limit !== undefined) break
  }
  if (scanned.limit === undefined) brackets.end()
  scanned.tokens.push(...parser.end())
  return scanned
}

export const tooDeep = (offset: number) => new YamlProblem(offset, `nested more than ${MAX_DEPTH} levels deep`)
const TOO_LARGE = 'the YAML has too many parts; send the agent as JSON'

/** Tracks brackets to report where an unclosed one begins. The parser reports only where it noticed. */
function createBrackets() {
  const open: { bracket: string; offset: number }[] = []
  const end = (): void => {
    const last = open.at(-1)
    if (last !== undefined) throw new YamlProblem(last.offset, `the ${last.bracket} is not closed`)
  }
  return {
    end,
    see(piece: string, type: CST.TokenType | null, offset: number): void {
      if (type === 'flow-map-start' || type === 'flow-seq-start') open.push({ bracket: piece, offset })
      else if (type === 'flow-error-end') end()
      else if (type === 'flow-map-end' || type === 'flow-seq-end') {
        const opening = piece === '}' ? '{' : '['
        if (open.length === 0) throw new YamlProblem(offset, `the ${piece} closes nothing`)
        if (open.at(-1)?.bracket !== opening) end()
        open.pop()
      }
    },
  }
}

function checkQuotes(piece: string, type: CST.TokenType | null, offset: number): void {
  const isOpen =
    (type === 'double-quoted-scalar' && !closesDouble(piece)) ||
    (type === 'single-quoted-scalar' && countAtEnd(piece, "'", piece.length) % 2 === 0)
  if (isOpen) throw new YamlProblem(offset, `the quote ${piece[0]} is not closed`)
}

const closesDouble = (piece: string): boolean =>
  piece.length > 1 && piece.endsWith('"') && countAtEnd(piece, '\\', piece.length - 1) % 2 === 0

/**
 * Counts the consecutive occurrences of `character` before `end`. The first character, the opening quote, does not
 * count.
 */
function countAtEnd(piece: string, character: string, end: number): number {
  let start = end
  while (start > 1 && piece[start - 1] === character) start--
  return end - start
}
