/** What a sentence is about, at its beginning: the path of a field, a line, or the whole. */
const PLACE = /^(?:[\w-]+(?:\.[^\s:]+)*|line \w+|The [a-z ]+): /

/** The validation library's own words, empty words, and phrases that are not English. */
const BANNED =
  /\b(expected|received|undefined|NaN|invalid input|too (big|small)|zod|regex|another (value|form))\b|(?<!there )\bis (no (?!longer)|none\b)|\bone that\b|\bwhoever\b|\bas (many|much|far) as\b|\b(that|those) of\b|\b(has|have|had) to\b|\bsomebody\b|\bnot any more\b/i

/** Longest sentence, so that none repeats what was sent. */
const MAX_SENTENCE = 1000

/**
 * Returns what is wrong with the form of an error's sentence, or undefined. A sentence names a field first, with a
 * small letter after the colon, or begins with a capital letter, and has no full stop.
 */
export function problemOf(sentence: string): string | undefined {
  if (sentence.length > MAX_SENTENCE) return 'is too long'
  const place = PLACE.exec(sentence)
  const words = place === null ? sentence : sentence.slice(place[0].length)
  const banned = BANNED.exec(words)
  if (banned !== null) return `says "${banned[0]}"`
  if ((place === null ? /^[a-z]/ : /^[A-Z][a-z]/).test(words)) return 'begins with the wrong case'
  return /\.$/.test(words) ? 'ends with a full stop' : undefined
}
