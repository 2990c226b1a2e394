import { inlines } from './markdown-inline.ts'
import type { Element } from './pieces.ts'
import { plain } from './plain.ts'

/** Limits beyond which a text is shown unformatted, because a slow expression must not block the page. */
const MAX_CHARACTERS = 100_000
const MAX_PARAGRAPH = 4000
const MAX_DEPTH = 6

const FENCE = /^ {0,3}(`{3,}|~{3,})/
const HEADING = /^ {0,3}#{1,6}[ \t]+(\S.*)$/
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/
const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])[ \t]+(?=\S)/
const QUOTE = /^ {0,3}> ?/

/** Parses a small part of Markdown into blocks. HTML, tables and images remain texts. */
export function parseMarkdown(text: string): Element[] {
  const clean = plain(text)
  if (clean.length > MAX_CHARACTERS) return [{ tag: 'p', children: [clean] }]
  return blocksOf(clean.replaceAll('\r\n', '\n').split('\n'), 0)
}

type Taken = { block: Element; next: number }

function blocksOf(lines: string[], depth: number): Element[] {
  const blocks: Element[] = []
  let paragraph: string[] = []
  const flush = () => {
    if (paragraph.length > 0) blocks.push(paragraphOf(paragraph.join('\n').trim()))
    paragraph = []
  }
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? ''
    const taken = depth < MAX_DEPTH ? takeBlock(lines, at, depth) : undefined
    if (taken !== undefined || line.trim() === '') flush()
    else paragraph.push(line)
    if (taken !== undefined) blocks.push(taken.block)
    at = taken?.next ?? at + 1
  }
  flush()
  return blocks
}

function takeBlock(lines: string[], at: number, depth: number): Taken | undefined {
  const line = lines[at] ?? ''
  const fence = FENCE.exec(line)?.[1]
  if (fence !== undefined) return takeCode(lines, at, fence)
  const heading = HEADING.exec(line)?.[1]
  if (heading !== undefined) return { block: headingOf(heading), next: at + 1 }
  if (RULE.test(line)) return { block: { tag: 'hr', children: [] }, next: at + 1 }
  if (ITEM.test(line)) return takeList(lines, at, depth)
  if (QUOTE.test(line)) return takeQuote(lines, at, depth)
  return undefined
}

const paragraphOf = (text: string): Element => ({
  tag: 'p',
  children: text.length > MAX_PARAGRAPH ? [text] : inlines(text),
})

/** A heading is a bold paragraph: the page's own headings have levels that the text cannot know. */
function headingOf(text: string): Element {
  const title = text.replace(/[ \t]#+[ \t]*$/, '')
  return { tag: 'p', children: [{ tag: 'strong', children: paragraphOf(title).children }] }
}

/** Takes a fenced block up to its end, or up to the end of a text that still grows. */
function takeCode(lines: string[], at: number, fence: string): Taken {
  const isEnd = (line: string) => {
    const found = line.trim()
    return found.startsWith(fence) && found === fence.charAt(0).repeat(found.length)
  }
  let end = at + 1
  while (end < lines.length && !isEnd(lines[end] ?? '')) end++
  const code = lines.slice(at + 1, end).join('\n')
  return { block: { tag: 'pre', children: [{ tag: 'code', children: [code] }] }, next: end + 1 }
}

function takeQuote(lines: string[], at: number, depth: number): Taken {
  let next = at
  while (next < lines.length && QUOTE.test(lines[next] ?? '')) next++
  const inner = lines.slice(at, next).map((line) => line.replace(QUOTE, ''))
  return { block: { tag: 'blockquote', children: blocksOf(inner, depth + 1) }, next }
}

const indentOf = (line: string): number => line.length - line.trimStart().length

function takeList(lines: string[], at: number, depth: number): Taken {
  const [, indent = '', marker = ''] = ITEM.exec(lines[at] ?? '') ?? []
  const isOrdered = /\d/.test(marker)
  const items: string[][] = []
  let next = at
  for (; next < lines.length; next++) {
    const line = lines[next] ?? ''
    const found = RULE.test(line) ? null : ITEM.exec(line)
    const isItem = found !== null && (found[1]?.length ?? 0) < indent.length + 2
    if (isItem && /\d/.test(found[2] ?? '') !== isOrdered) break
    if (isItem) items.push([line.slice(found[0].length)])
    else if (isContinued(lines, next, indent.length)) items.at(-1)?.push(line)
    else break
  }
  const children = items.map((item) => itemOf(item, depth))
  const start = isOrdered ? Number.parseInt(marker, 10) : 1
  return { block: { tag: isOrdered ? 'ol' : 'ul', children, ...(start !== 1 && { start }) }, next }
}

/** Reports whether a line belongs to the item above it: it is indented, or it directly continues the item's text. */
function isContinued(lines: string[], at: number, indent: number): boolean {
  const line = lines[at] ?? ''
  if (line.trim() === '') {
    const following = lines.slice(at + 1, at + 3).find((one) => one.trim() !== '')
    return following !== undefined && (indentOf(following) > indent || ITEM.test(following))
  }
  if (indentOf(line) > indent) return true
  const isText = [FENCE, HEADING, RULE, QUOTE].every((other) => !other.test(line))
  return isText && (lines[at - 1] ?? '').trim() !== ''
}

/** An item of one paragraph has its text without a paragraph. */
function itemOf([first = '', ...rest]: string[], depth: number): Element {
  const shared = Math.min(...rest.filter((line) => line.trim() !== '').map(indentOf))
  const inner = rest.map((line) => line.slice(Math.min(shared, indentOf(line))))
  const [block, ...more] = blocksOf([first, ...inner], depth + 1)
  if (block?.tag === 'p') return { tag: 'li', children: [...block.children, ...more] }
  return { tag: 'li', children: block ? [block, ...more] : more }
}
