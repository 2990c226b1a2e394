import type { Piece } from './pieces.ts'

const MAX_DEPTH = 4

/** Places that may be more than text. Each alternative is bounded by the length of a paragraph. */
const MARKED = new RegExp(
  [
    String.raw`\\(?<escaped>[\\\x60*_{}[\]()#+.!~>|-])`,
    String.raw`(?<ticks>\x60+)(?!\x60)(?<code>.+?)(?<!\x60)\k<ticks>(?!\x60)`,
    String.raw`!?\[(?<label>[^[\]]*)\]\((?<target>[^\s()]+(?:\([^\s()]*\)[^\s()]*)*)(?:\s+"[^"]*")?\)`,
    String.raw`<(?<angled>(?:https?:|mailto:)[^\s<>]+)>`,
    String.raw`(?<![\p{L}\p{N}])(?<bare>https?:\/\/[^\s<>"\x60]*[^\s<>"\x60'.,:;!?)\]*_])`,
    String.raw`\*\*(?=\S)(?<strong>.+?)(?<=\S)\*\*(?!\*)`,
    String.raw`(?<![\p{L}\p{N}_])__(?=\S)(?<strong2>.+?)(?<=\S)__(?![\p{L}\p{N}_])`,
    String.raw`\*(?=[^\s*])(?<em>.+?)(?<=[^\s*])\*(?!\*)`,
    String.raw`(?<![\p{L}\p{N}_])_(?=[^\s_])(?<em2>.+?)(?<=[^\s_])_(?![\p{L}\p{N}_])`,
    String.raw`~~(?=\S)(?<struck>.+?)(?<=\S)~~`,
  ].join('|'),
  'gsu',
)

/** Parses the text of a paragraph. */
export function inlines(text: string, depth = 0): Piece[] {
  if (depth === MAX_DEPTH) return [text]
  const pieces: Piece[] = []
  const push = (piece: Piece) => {
    const last = pieces.at(-1)
    if (piece === '') return
    if (typeof piece === 'string' && typeof last === 'string') pieces[pieces.length - 1] = last + piece
    else pieces.push(piece)
  }
  let from = 0
  for (const match of text.matchAll(MARKED)) {
    push(text.slice(from, match.index))
    push(pieceOf(match, depth))
    from = match.index + match[0].length
  }
  push(text.slice(from))
  return pieces
}

function pieceOf({ 0: whole, groups = {} }: RegExpExecArray, depth: number): Piece {
  const { escaped, code, label, target = groups.angled ?? groups.bare } = groups
  if (escaped !== undefined) return escaped
  if (code !== undefined) return { tag: 'code', children: [code] }
  if (target !== undefined) return linkOf(target, label === undefined ? [target] : inlines(label, depth + 1), whole)
  const [strong, em, struck] = [groups.strong ?? groups.strong2, groups.em ?? groups.em2, groups.struck]
  if (strong !== undefined) return { tag: 'strong', children: inlines(strong, depth + 1) }
  if (em !== undefined) return { tag: 'em', children: inlines(em, depth + 1) }
  return { tag: 's', children: inlines(struck ?? '', depth + 1) }
}

/** A link to anything but the web or a mailbox remains text. */
function linkOf(target: string, children: Piece[], whole: string): Piece {
  const href = safeHref(target)
  return href === undefined ? whole : { tag: 'a', href, children: children.length > 0 ? children : [target] }
}

/** Returns a complete address of the web or of a mailbox, or undefined. */
export function safeHref(target: string): string | undefined {
  const url = /^(?:https?|mailto):/i.test(target) && URL.canParse(target) ? new URL(target) : undefined
  return url !== undefined && ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : undefined
}
