import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { extname, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Facts about the service that the page cannot request from it. */
export type ConsoleOptions = {
  /** Prefix of the API's paths, or ''. */
  prefix: string
  /** Address of the Temporal UI, and the namespace in it. */
  temporalUi: { url: string; namespace: string } | undefined
}

export type Asset = { type: string; content: Buffer }

/** Served files of the console. Each asset is at `console/<hash>/<its path>`, relative to the page. */
export type Site = { hash: string; html: string; policy: string; assets: Map<string, Asset> }

const SOURCES = new URL('../../console/', import.meta.url)
const TYPES: Record<string, string> = { '.ts': 'text/javascript', '.js': 'text/javascript', '.css': 'text/css' }

/** Packages that the console imports by name. */
const PACKAGES = ['preact', 'preact/hooks', '@preact/signals', '@preact/signals-core', 'htm', 'marked', 'dompurify']
const CLIENT = new URL('../../client/dist/browser.js', import.meta.url)

/** Reads the console's sources and packages. */
export async function buildSite(options: ConsoleOptions): Promise<Site> {
  const assets = new Map<string, Asset>()
  for (const path of await listFiles(SOURCES)) {
    const text = await readFile(new URL(path, SOURCES), 'utf8')
    const content = path.endsWith('.ts') ? stripTypeScriptTypes(text) : text
    const type = TYPES[extname(path)]
    if (type !== undefined) assets.set(path, { type, content: Buffer.from(content) })
  }
  const modules: Record<string, string> = { 'agent-session-client': 'client.js' }
  assets.set('client.js', script(await readFile(CLIENT)))
  for (const name of PACKAGES) {
    const path = `packages/${name}.js`
    assets.set(path, script(await readFile(new URL(import.meta.resolve(name)))))
    modules[name] = path
  }
  const hash = hashOf(assets)
  const { html, inline } = page(hash, modules, assets, options)
  return { hash, html, policy: policyFor(inline), assets }
}

const script = (content: Buffer): Asset => ({ type: 'text/javascript', content })

async function listFiles(folder: URL): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(fileURLToPath(folder), `${entry.parentPath}${sep}${entry.name}`).replaceAll(sep, '/'))
    .filter((path) => !path.endsWith('.d.ts'))
    .sort()
}

function hashOf(assets: Map<string, Asset>): string {
  const hash = createHash('sha256')
  for (const [path, { content }] of assets) hash.update(`${path}\0${content.length}\0`).update(content)
  return hash.digest('hex').slice(0, 16)
}

/** Shows a message when the console does not start because a module is missing or cannot run. */
const BOOT = `const boot = document.getElementById('boot')
addEventListener('error', ({ target }) => {
  if (target === window || target.type === 'module') boot.hidden = false
}, true)
boot.querySelector('button').addEventListener('click', () => location.reload())`

/** All modules are named in the page, so that a browser asks for them at once and none is missing after a deployment. */
function page(hash: string, modules: Record<string, string>, assets: Map<string, Asset>, options: ConsoleOptions) {
  const at = (path: string) => `./console/${hash}/${path}`
  const imports = Object.fromEntries(Object.entries(modules).map(([name, path]) => [name, at(path)]))
  const importMap = JSON.stringify({ imports })
  const scripts = [...assets].filter(([, { type }]) => type === 'text/javascript').map(([path]) => path)
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="service" content="${escapeAttribute(JSON.stringify(options))}">
<title>Console</title>
<link rel="icon" href="favicon.ico">
<link rel="stylesheet" href="${at('style.css')}">
<script type="importmap">${importMap}</script>
${scripts.map((path) => `<link rel="modulepreload" href="${at(path)}">`).join('\n')}
<script type="module" src="${at('main.ts')}"></script>
</head>
<body><noscript>The console needs JavaScript.</noscript>
<main id="boot" hidden><h1>Console</h1><p class="problem" role="alert">The console could not be loaded.</p><button type="button">Try again</button></main>
<script>${BOOT}</script></body>
</html>
`
  return { html, inline: [importMap, BOOT] }
}

const escapeAttribute = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;')

/** Allows the service's own scripts and styles, the page's inline ones by hash, and HTML from DOMPurify only. */
function policyFor(inline: string[]): string {
  const hashes = inline.map((text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`)
  return [
    "default-src 'none'",
    `script-src 'self' ${hashes.join(' ')}`,
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
