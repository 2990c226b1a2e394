/**
 * A chat in a web page, on the typed client, served from an origin of its own. In the service's repository:
 *
 *     npm run client && cd examples && npm install && node web/serve.js
 *
 * The service has to know that origin: CORS_ALLOWED_ORIGINS=http://localhost:9399 npm start
 */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname } from 'node:path'

const { PORT = '9399' } = process.env
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript' }
/** Files of the page, and the client as one module. */
const FILES = {
  '/index.html': new URL('index.html', import.meta.url),
  '/chat.js': new URL('chat.js', import.meta.url),
  '/agent-session-client.js': new URL(import.meta.resolve('agent-session-client/browser')),
}

const server = createServer(async (request, response) => {
  const path = (URL.parse(request.url, 'http://localhost')?.pathname ?? '').replace(/^\/$/, '/index.html')
  const file = Object.hasOwn(FILES, path) ? FILES[path] : undefined
  if (file === undefined) return response.writeHead(404).end()
  response.writeHead(200, { 'Content-Type': TYPES[extname(path)] }).end(await readFile(file))
})
server.listen(Number(PORT), 'localhost', () => {
  process.stdout.write(`Open http://localhost:${server.address().port}/\n`)
})
