import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseAllowedHost } from '../../../../lib/outgoing/allowed-host.ts'

export type WebServer = { url: string; port: number; requests: IncomingMessage[]; stop(): Promise<void> }

/** Starts a local web server that collects its requests. */
export async function startWebServer(answer: RequestListener): Promise<WebServer> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    answer(request, response)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/**
 * Resolver that answers with the web server's address, which is allowed, and from then on with another, which is not and
 * has no server. A name that is resolved for its check, and again for the connection, does not arrive.
 */
export function rebinding(port: number) {
  const asked: string[] = []
  const resolve = async (host: string) => {
    asked.push(host)
    return [{ address: asked.length === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }]
  }
  const allowed = parseAllowedHost(`127.0.0.1:${port}`)
  return { asked, resolve, allowedHosts: allowed === undefined ? [] : [allowed] }
}
