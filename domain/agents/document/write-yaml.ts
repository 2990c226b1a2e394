export type Json = string | number | boolean | null | Json[] | JsonObject
/** JSON object. Undefined values are omitted. */
export type JsonObject = { [key: string]: Json | undefined }

/** Maximum depth of indented levels. Deeper levels are written as JSON on one line, to limit indentation. */
const MAX_BLOCK_DEPTH = 8
/** Maximum length of a key. YAML limits keys outside braces to 1024 characters, and an escaped character takes six. */
const MAX_KEY_LENGTH = 160

/** Words that a YAML 1.1 reader does not read as text. */
const WORDS = /^(y|n|yes|no|on|off|true|false|null)$/i
const PLAIN_KEY = /^[A-Za-z_$][\w$-]*$/
const PLAIN_START = /^[\p{L}\p{Extended_Pictographic}]/u
/** Control and format characters, white space other than the space, and YAML's indicators. */
const NOT_PLAIN = /\p{C}|[^\S ]|:( |$)| #| $/u
const NOT_LITERAL = /[^\P{C}\n]|[\p{Zl}\p{Zp}]|[^\S\n]\n|^\s|\s$/u
/** Characters that are valid in JSON, but that some editors or YAML readers do not preserve. */
const UNPRINTABLE = /[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]/g

/** Serializes a value as one line of JSON that is also valid YAML. */
export const toJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Writes a map with one or more lines per key, in the object's order. */
export const writeYamlMap = (map: JsonObject): string => `${mapLines(map, '', 1).join('\n')}\n`

function mapLines(map: JsonObject, indent: string, depth: number): string[] {
  const given = Object.entries(map).filter(([, value]) => value !== undefined)
  return given.map(([key, value = null]) => `${indent}${writeKey(key)}:${writeField(value, indent, depth)}`)
}

/** Writes the value that follows a key's colon. */
function writeField(value: Json, indent: string, depth: number): string {
  const lines = blockLines(value, `${indent}  `, depth + 1)
  return lines === undefined ? ` ${writeScalar(value, indent)}` : `\n${lines.join('\n')}`
}

/** Writes an item of a list. Its first line stands beside the dash. */
function writeItem(value: Json, indent: string, depth: number): string {
  const inner = `${indent}  `
  const lines = blockLines(value, inner, depth + 1)
  return `${indent}- ${lines === undefined ? writeScalar(value, indent) : lines.join('\n').slice(inner.length)}`
}

/** Returns the lines of a value, or undefined for a value that is written on one line. */
function blockLines(value: Json, indent: string, depth: number): string[] | undefined {
  if (typeof value !== 'object' || value === null || depth > MAX_BLOCK_DEPTH) return undefined
  const hasLongKey = Object.keys(value).some((key) => key.length > MAX_KEY_LENGTH)
  const lines = Array.isArray(value)
    ? value.map((item) => writeItem(item, indent, depth))
    : hasLongKey
      ? []
      : mapLines(value, indent, depth)
  return lines.length === 0 ? undefined : lines
}

const writeKey = (key: string): string => (PLAIN_KEY.test(key) && !WORDS.test(key) ? key : toJson(key))

function writeScalar(value: Json, indent: string): string {
  if (typeof value !== 'string') return toJson(value)
  if (PLAIN_START.test(value) && !NOT_PLAIN.test(value) && !WORDS.test(value)) return value
  if (!value.includes('\n') || NOT_LITERAL.test(value)) return toJson(value)
  return `|-\n${value.replace(/^(?=.)/gm, `${indent}  `)}`
}
