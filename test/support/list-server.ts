import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A provider's list of models. `answer` may be replaced at any time. */
export type ListServer = {
  baseUrl: string
  answer: (response: ServerResponse) => void
  close: () => Promise<void>
}

/** Makes an answer that lists models as OpenAI does. */
export const openaiList =
  (...ids: string[]) =>
  (response: ServerResponse): void => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ object: 'list', data: ids.map((id) => ({ id, object: 'model' })) }))
  }

/** Starts a server on a free local port that answers every request with `answer`. */
export async function startListServer(): Promise<ListServer> {
  const list: ListServer = { baseUrl: '', answer: openaiList(), close: async () => {} }
  const server = createServer((_, response) => list.answer(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  list.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  list.close = async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  return list
}
