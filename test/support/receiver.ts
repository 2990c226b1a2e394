import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import type { Json } from './http.ts'

/** Request to a receiver of webhooks. */
export type Received = { id: string; path: string; body: string; event: Json; headers: IncomingHttpHeaders }

/** A receiver of webhooks. `answer` may be replaced at any time. */
export type Receiver = {
  url: string
  received: Received[]
  answer: (response: ServerResponse, received: Received) => void
  /** Returns the requests to a path, in the order in which they arrived. */
  at(path: string): Received[]
  close(): Promise<void>
}

/** Starts a receiver on a free local port. It answers 204 unless `answer` says otherwise. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const body = await text(request)
    const { headers, url: path = '' } = request
    const one = { id: String(headers['webhook-id']), path, body, event: JSON.parse(body), headers }
    received.push(one)
    receiver.answer(response, one)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answer: (response) => response.writeHead(204).end(),
    at: (path) => received.filter((one) => one.path === path),
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
  return receiver
}

/** Whether the npm package `standardwebhooks` accepts a request under a secret. */
export function isVerified(secret: string, { body, headers }: Received): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}
