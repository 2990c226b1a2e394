import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'

/** Facts about the service that the page cannot request from it. */
export type ConsoleOptions = {
  /** Prefix of the API's paths, or ''. */
  prefix: string
  /** Address of the Temporal UI, and the namespace in it. */
  temporalUi: { url: string; namespace: string } | undefined
}

/** Names of the files that scripts/console.ts has made. */
export type Manifest = {
  style: string
  main: string
  /** Chunks that `main` imports. */
  shared: string[]
  /** Further chunks of each view. */
  views: Record<string, string[]>
  /** Licences of the packages in the scripts, which have to go with them. */
  licences: string
}

export type Asset = { type: string; content: Buffer }

/** Served files of the console. Each asset is at `console/files/<its name>`, relative to the page. */
export type Site = { html: string; policy: string; assets: Map<string, Asset> }

/** Style of the page of invitations, which looks like the console. */
export const JOIN_STYLE = 'join.css'
export const readJoinStyle = (): string => readFileSync(new URL(JOIN_STYLE, DIST), 'utf8')

/** Applies the theme that was chosen in the console (console/theme.ts). */
export const APPLY_THEME =
  "try { document.documentElement.dataset.theme = localStorage.getItem('console.theme') ?? '' } catch {}"

/** Returns the source by which a policy allows an inline script. */
export const sourceOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

const DIST = new URL('../../console/dist/', import.meta.url)
const TYPES: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.txt': 'text/plain' }

/** Reads the files of the console. */
export async function readSite(options: ConsoleOptions): Promise<Site> {
  const assets = new Map<string, Asset>()
  for (const name of await readdir(DIST)) {
    const type = TYPES[extname(name)]
    if (type !== undefined && name !== JOIN_STYLE)
      assets.set(name, { type, content: await readFile(new URL(name, DIST)) })
  }
  const manifest: Manifest = JSON.parse(await readFile(new URL('manifest.json', DIST), 'utf8'))
  const boot = bootScript(manifest)
  const icons = await readFile(new URL('icons.svg', DIST), 'utf8')
  return { html: page(manifest, boot, icons, options), policy: policyFor(boot), assets }
}

const addressOf = (name: string): string => `./console/files/${name}`

/** Time after which a page that has not begun says so. A slow line still loads it. */
const LATE_MS = 10_000

/**
 * Loads the chunks of the view that the address names together with the main script, and applies the chosen theme before
 * anything is drawn. Shows a message when the main script or the style does not load, or comes late: then it no longer
 * keeps the page from being drawn. It runs before both are requested.
 */
const bootScript = ({ views }: Manifest): string => `const views = ${JSON.stringify(views)}
const [, place = 'agents', id] = location.hash.split(/[/?]/)
const chunksOf = (view) => Object.hasOwn(views, view) ? views[view] : []
for (const name of [...chunksOf(place), ...(id ? chunksOf(place.replace(/s$/, '')) : [])])
  document.head.append(Object.assign(document.createElement('link'), { rel: 'modulepreload', href: './console/files/' + name }))
${APPLY_THEME}
const say = (sentence) => {
  const boot = document.getElementById('boot')
  if (!boot) return
  boot.querySelector('p').textContent = sentence
  boot.querySelector('button').onclick = () => location.reload()
  boot.hidden = false
}
const late = setTimeout(() => {
  say('Loading takes longer than usual.')
  const style = document.querySelector('[rel=stylesheet]')
  if (style && !style.sheet) style.replaceWith(style.cloneNode())
}, ${LATE_MS})
addEventListener('error', ({ target }) => {
  // The rules before the break would count as the style.
  if (target.rel === 'stylesheet') target.remove()
  else if (target !== window && target.type !== 'module') return
  clearTimeout(late)
  say('The console could not be loaded.')
}, true)`

function page(
  { style, main, shared, licences }: Manifest,
  boot: string,
  icons: string,
  options: ConsoleOptions,
): string {
  const preloads = shared.map((name) => `<link rel="modulepreload" href="${addressOf(name)}">`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="service" content="${escapeAttribute(JSON.stringify(options))}">
<title>Console</title>
<script>${boot}</script>
<link rel="icon" href="favicon.ico">
<link rel="license" href="${addressOf(licences)}">
<link rel="stylesheet" href="${addressOf(style)}">
<script type="module" src="${addressOf(main)}"></script>
${preloads.join('\n')}
</head>
<body><noscript>The console needs JavaScript.</noscript>
<main id="boot" hidden><h1>Console</h1><p class="problem" role="alert"></p><button type="button">Try again</button></main>
${icons}</body>
</html>
`
}

const escapeAttribute = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

/** Allows the service's own scripts and styles, the page's inline script by hash, and HTML from DOMPurify only. */
function policyFor(inline: string): string {
  return [
    "default-src 'none'",
    `script-src 'self' ${sourceOf(inline)}`,
    "style-src 'self'",
    "img-src 'self' blob: data:",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types dompurify',
  ].join('; ')
}
