/** Error of an invalid glob. The message says why. */
export class GlobError extends Error {
  override name = 'GlobError'
}

/**
 * Translates a glob to a regular expression of RE2 for absolute paths: `*`, `?`, `**` for any depth, `[a-z]`, `[!a-z]`,
 * `{a,b}` and `\` before a literal character. Without a slash it matches the name, at any depth. Throws GlobError.
 */
export function globToRegex(glob: string): string {
  // A directory stands for everything in it.
  const whole = glob.endsWith('/') ? `${glob}**` : glob
  return `(?s)^${beginning(whole)}${translate(whole)}$`
}

function beginning(glob: string): string {
  if (!glob.includes('/')) return '(?:.*/)?'
  if (glob.startsWith('/')) return ''
  return glob.startsWith('{') ? '/?' : '/'
}

/** Pieces of a glob: wildcards and classes, and single characters. */
const PIECES = /\*\*\/|\*+|\?|\[[!^]?\]?(?:\\.|[^\]\\])*\]|\\.|[{},]|./gsu

function translate(glob: string): string {
  const pieces = [...glob.matchAll(PIECES)].map(([piece]) => piece)
  let depth = 0
  const translated = pieces.map((piece) => {
    if (piece === '{') depth++
    if (depth === 0 && (piece === '}' || piece === ',')) return literal(piece)
    if (piece === '}') depth--
    return translatePiece(piece)
  })
  if (depth > 0) throw new GlobError('{ has no }')
  return translated.join('')
}

const TRANSLATIONS: Record<string, string> = {
  '**/': '(?:.*/)?',
  '*': '[^/]*',
  '?': '[^/]',
  '{': '(?:',
  ',': '|',
  '}': ')',
}

function translatePiece(piece: string): string {
  const translation = TRANSLATIONS[piece]
  if (translation !== undefined) return translation
  if (piece === '[') throw new GlobError('[ has no ]')
  if (piece === '\\') throw new GlobError('there is nothing behind the last \\')
  if (piece.startsWith('*')) return '.*'
  return piece.startsWith('[') ? translateClass(piece) : literal(piece.replace(/^\\/, ''))
}

/** Translates `[…]`. A negated class does not match a slash either. */
function translateClass(text: string): string {
  const [, negation = '', inside = ''] = /^\[([!^]?)(.*)\]$/su.exec(text) ?? []
  const parts = [...inside.matchAll(/(\\.|[^\\])(?:-(\\.|[^\\]))?/gsu)].map(([, from = '', to]) => {
    const [first, last] = [from, to ?? from].map((part) => part.replace(/^\\/, ''))
    if ((first?.codePointAt(0) ?? 0) > (last?.codePointAt(0) ?? 0)) throw new GlobError(`${from}-${to} is not a range`)
    return `${literal(first ?? '')}-${literal(last ?? '')}`
  })
  return negation === '' ? `[${parts.join('')}]` : `[^/${parts.join('')}]`
}

const literal = (character: string): string =>
  /^[\w/]$/.test(character) ? character : `\\x{${(character.codePointAt(0) ?? 0).toString(16)}}`
