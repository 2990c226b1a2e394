/** Signs by the names that pages have for them. */
const NAMED: Record<string, string> = {
  ...{ amp: '&', apos: "'", ast: '*', bsol: '\\', colon: ':', comma: ',', commat: '@', dollar: '$', equals: '=' },
  ...{ excl: '!', grave: '`', gt: '>', hat: '^', lbrace: '{', lbrack: '[', lcub: '{', lowbar: '_', lpar: '(' },
  ...{ lsqb: '[', lt: '<', num: '#', percnt: '%', period: '.', plus: '+', quest: '?', quot: '"', rbrace: '}' },
  ...{ rbrack: ']', rcub: '}', rpar: ')', rsqb: ']', semi: ';', sol: '/', verbar: '|', vert: '|' },
}
/** Character of ASCII as pages (&#x2f; &#47; &sol;), JSON (\u002f \/) and addresses (%2f) write it. */
const WRITTEN = new RegExp(
  [
    '&#x0{0,6}(?<hex>[2-7][0-9a-f]);?',
    String.raw`&#0{0,6}(?<decimal>3[2-9]|[4-9]\d|1[01]\d|12[0-6]);?`,
    `&(?<name>${Object.keys(NAMED).join('|')});?`,
    String.raw`\\u00(?<unit>[2-7][0-9a-f])`,
    String.raw`\\(?<escaped>[/"\\])`,
    '%(?<byte>[2-7][0-9a-f])',
  ].join('|'),
  'gi',
)

/** Text with decoded signs. `place` returns where a position in it is in the text as it was. */
export type Decoded = { text: string; place(at: number): number }

/** Maximum number of decoded signs: less than a second, and enough for a secret of 1 MiB in JSON. */
const MAX_SIGNS = 600_000

/** Decodes the signs that a text writes in another way than as they are. Undefined for a text without. */
export function decodeSigns(given: string): Decoded | 'too_many' | undefined {
  /** Positions behind decoded signs: in the text, and as it was. */
  const [after, before]: [number[], number[]] = [[0], [0]]
  const pieces: string[] = []
  let [length, from] = [0, 0]
  for (const { 0: written, index, groups = {} } of given.matchAll(WRITTEN)) {
    if (after.length > MAX_SIGNS) return 'too_many'
    const piece = given.slice(from, index) + signOf(groups)
    pieces.push(piece)
    length += piece.length
    from = index + written.length
    after.push(length)
    before.push(from)
  }
  if (from === 0) return undefined
  const text = pieces.join('') + given.slice(from)
  const place = (at: number) => {
    const known = lastUpTo(after, at)
    return (before[known] ?? 0) + at - (after[known] ?? 0)
  }
  return { text, place }
}

function signOf({ hex, decimal, name, unit, escaped, byte }: Record<string, string | undefined>): string {
  if (name !== undefined) return NAMED[name.toLowerCase()] ?? ''
  if (escaped !== undefined) return escaped
  const code = decimal === undefined ? Number.parseInt(hex ?? unit ?? byte ?? '', 16) : Number(decimal)
  return String.fromCharCode(code)
}

/** Returns the index of the last number that is at most `value`, in a sorted list that begins with 0. */
function lastUpTo(sorted: number[], value: number): number {
  let [low, high] = [0, sorted.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if ((sorted[middle] ?? 0) <= value) low = middle
    else high = middle - 1
  }
  return low
}
