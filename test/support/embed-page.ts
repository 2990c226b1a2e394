import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Page of another origin that has the element `<agent-chat>`, under a policy that allows nothing inline. */
export type EmbedSite = {
  origin: string
  /** Number of times that the page's token endpoint was asked. It answers with the tokens in turn, the last one again. */
  readonly tokensGiven: number
  /** Address of a page with an element of these attributes, which it loads from a service. */
  pageOf(service: string, attributes: Record<string, string>): string
  close(): Promise<void>
}

/** Has a tool of the page, which is set before the element is defined, and keeps the events. */
const SCRIPT = `
const chat = document.querySelector('agent-chat')
chat.tools = { ask_page: async ({ question }) => 'The page was asked: ' + question }
globalThis.heard = []
for (const type of ['session', 'answer', 'error']) {
  chat.addEventListener('agent-chat:' + type, ({ detail }) => heard.push({ type, ...detail }))
}
`

const page = (service: string, attributes: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><title>Shop</title><meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">
<script src="page.js" defer></script>
<script type="module" src="${service}/embed.js"></script>
</head>
<body><main><h1>Shop</h1><agent-chat ${attributes}></agent-chat></main></body>
</html>`

const policyOf = (service: string): string =>
  [
    "default-src 'none'",
    `script-src 'self' ${service}`,
    `connect-src 'self' ${service}`,
    'img-src blob: data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')

export async function startEmbedSite(tokens: string[] = []): Promise<EmbedSite> {
  let tokensGiven = 0
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    if (pathname === '/token') {
      const token = tokens[Math.min(tokensGiven++, tokens.length - 1)]
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ token }))
    } else if (pathname === '/page.js') {
      response.setHeader('Content-Type', 'text/javascript').end(SCRIPT)
    } else {
      const { service = '', ...attributes } = Object.fromEntries(searchParams)
      const written = Object.entries(attributes).map(([name, value]) => `${name}="${value}"`)
      response.setHeader('Content-Security-Policy', policyOf(service)).setHeader('Content-Type', 'text/html')
      response.end(page(service, written.join(' ')))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  const origin = `http://localhost:${(server.address() as AddressInfo).port}`
  return {
    origin,
    get tokensGiven() {
      return tokensGiven
    },
    pageOf: (service, attributes) => `${origin}/?${new URLSearchParams({ service, ...attributes })}`,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
