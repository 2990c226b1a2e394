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
const FOLDERS = {
  '': import.meta.url,
  'agent-session-client': import.meta.resolve('agent-session-client'),
  'eventsource-parser': import.meta.resolve('eventsource-parser'),
}

/** Finds the file of a path, in the folder that its first part names. */
function findFile(path) {
  const [, name = '', ...rest] = path.split('/')
  if (rest.length === 0) return new URL(name, FOLDERS[''])
  if (!Object.hasOwn(FOLDERS, name)) return undefined
  const file = new URL(rest.join('/'), FOLDERS[name])
  return file.href.startsWith(new URL('.', FOLDERS[name]).href) ? file : undefined
}

const server = createServer(async (request, response) => {
  const path = (URL.parse(request.url, 'http://localhost')?.pathname ?? '').replace(/^\/$/, '/index.html')
  const type = TYPES[extname(path)]
  const file = type && findFile(path)
  const content = file && (await readFile(file).catch(() => undefined))
  if (content === undefined) return response.writeHead(404).end()
  response.writeHead(200, { 'Content-Type': type }).end(content)
})
server.listen(Number(PORT), 'localhost', () => {
  process.stdout.write(`Open http://localhost:${server.address().port}/\n`)
})
