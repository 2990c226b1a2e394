import { createReadStream } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type Router from '@koa/router'
import { GUIDES } from '../http/openapi.ts'
import { addPage } from './page.ts'

const assets = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))
const TYPES: Record<string, string> = { 'swagger-ui.css': 'text/css', 'swagger-ui-bundle.js': 'text/javascript' }

const html = `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Agent Session Service API</title>
  <link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
  <div id="docs"></div>
  <script src="docs/swagger-ui-bundle.js"></script>
  <script src="docs/start.js"></script>
</body>
</html>
`
const script = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#docs', deepLinking: true, docExpansion: 'none' })`
const guides = new URL('../../docs/', import.meta.url)
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#246"/><path d="M4 5h8M4 8h8M4 11h5" stroke="#fff" stroke-width="1.5"/></svg>`
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"

/**
 * Serves the OpenAPI document, the guides that it links to, and a page to read and try it whose assets all come from
 * this server.
 * The document is built when it is first asked for, because it takes a tenth of the start of a process.
 */
export function addDocs(router: Router, buildDocument: () => object): void {
  let json: string | undefined
  router.get('/openapi.json', (ctx) => {
    json ??= JSON.stringify(buildDocument())
    ctx.type = 'application/json'
    ctx.body = json
  })
  router.get('/favicon.ico', (ctx) => {
    ctx.type = 'image/svg+xml'
    ctx.body = icon
  })
  addPage(router, 'docs', { html, script, policy })
  for (const { name } of GUIDES) {
    router.get(`/docs/${name}.md`, (ctx) => {
      // Browsers show it as text, and save text/markdown.
      ctx.type = 'text/plain; charset=utf-8'
      ctx.body = createReadStream(new URL(`${name}.md`, guides))
    })
  }
  for (const [name, type] of Object.entries(TYPES)) {
    router.get(`/docs/${name}`, (ctx) => {
      ctx.type = type
      ctx.set('Cache-Control', 'public, max-age=86400')
      ctx.body = createReadStream(join(assets, name))
    })
  }
}
