import TurndownService from 'turndown'
import { serveJobs } from '../../../../lib/threads/worker.ts'

/** Entry point of a web page thread. Reads a page and returns its title and the beginning of its Markdown. */

export type Page = { html: string; url: string; maxCharacters: number }
export type ConvertedPage = { title: string; markdown: string; truncated: boolean }

const MAX_TITLE_CHARACTERS = 500
const JUNK = ['script', 'style', 'noscript', 'template', 'nav', 'iframe', 'object', 'canvas', 'svg', 'form']

function convert({ html, url, maxCharacters }: Page): ConvertedPage {
  const turndown = new TurndownService({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-' })
  let title = ''
  turndown.remove((node) => JUNK.includes(node.nodeName.toLowerCase()))
  turndown.addRule('title', {
    filter: 'title',
    replacement: (content, node) => {
      if (node.parentNode?.nodeName.toLowerCase() !== 'svg') title ||= content.replace(/\s+/g, ' ').trim()
      return ''
    },
  })
  turndown.addRule('link', {
    filter: 'a',
    replacement: (content, node) => link(content, absolute(attribute(node, 'href'), url)),
  })
  turndown.addRule('image', {
    filter: 'img',
    replacement: (_content, node) => image(attribute(node, 'alt'), absolute(attribute(node, 'src'), url)),
  })
  const markdown = turndown.turndown(html).trim()
  return {
    title: title.slice(0, MAX_TITLE_CHARACTERS),
    markdown: markdown.slice(0, maxCharacters),
    truncated: markdown.length > maxCharacters,
  }
}

const link = (content: string, address: string | undefined): string =>
  address === undefined || content.trim() === '' ? content : `[${content.trim()}](${address})`

const image = (alt: string, address: string | undefined): string =>
  address === undefined ? alt : `![${alt}](${address})`

/** Resolves an address against the page's. Undefined for scripts, and for data URLs, which may hold a whole image. */
function absolute(address: string, base: string): string | undefined {
  const resolved = address === '' ? null : URL.parse(address, base)
  if (resolved === null || !/^(https?|mailto):$/.test(resolved.protocol)) return undefined
  return resolved.href.replaceAll('(', '%28').replaceAll(')', '%29')
}

function attribute(node: TurndownService.Node, name: string): string {
  return 'getAttribute' in node ? (node.getAttribute(name) ?? '').replace(/\s+/g, ' ').trim() : ''
}

serveJobs<Page, ConvertedPage>((page) => [convert(page)])
