/** Maximum length of a name in bytes, as in most file systems. */
const MAX_BYTES = 255

/** Quotes and line breaks as browsers encode them in multipart forms (HTML, multipart form data). */
const ESCAPED = /%22|%0D|%0A/g
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"]/gu

/**
 * Returns a file name without its folders, quotes, and characters that cannot be seen or would reorder the text around
 * them. Undefined when nothing is left. Emoji keep their joiners.
 */
export function cleanFileName(name: string): string | undefined {
  const last = name.split(/[/\\]/).at(-1) ?? ''
  const visible = last
    .normalize('NFC')
    .replace(ESCAPED, '')
    .replace(UNSEEN, '')
    .replace(/\s+/gu, ' ')
    .replace(/^[ .]+|[ .]+$/g, '')
  return shorten(visible) || undefined
}

/** Cuts a long name before its extension. */
function shorten(name: string): string {
  if (Buffer.byteLength(name) <= MAX_BYTES) return name
  const extension = /\.\w{1,10}$/.exec(name)?.[0] ?? ''
  const kept = [...name.slice(0, name.length - extension.length)]
  while (Buffer.byteLength(kept.join('')) > MAX_BYTES - extension.length) kept.pop()
  return kept.join('') + extension
}
