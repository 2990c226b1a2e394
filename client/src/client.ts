import { type ClientOptions, createConnection } from './connection.ts'
import { toApiError } from './errors.ts'
import { createClient as createGenerated } from './generated/client/index.ts'
import { Api, type CreateSessionRequest } from './generated/index.ts'
import { repeated, SOME_PATIENCE } from './retry.ts'
import { createSessionClient, newKey, type SessionClient } from './session.ts'

export type Client = {
  /** All operations by their names, with the same address, headers and token. They throw ApiError. */
  api: Api
  sessions: {
    /** Creates a session. It is created once, however often the request has to be repeated. */
    create(session?: CreateSessionRequest): Promise<SessionClient>
  }
  session(id: string): SessionClient
}

/** Creates a client. It opens no connection before something is asked of it. */
export function createClient(options: ClientOptions): Client {
  const connection = createConnection(options)
  const generated = createGenerated({
    baseUrl: options.baseUrl.replace(/\/+$/, ''),
    headers: options.headers,
    fetch: (request) => connection.send(request as Request),
    throwOnError: true,
  })
  // An answer that broke off is an error of the network.
  generated.interceptors.error.use((error, response) =>
    response === undefined || response.ok ? error : toApiError(response, error),
  )
  const api = new Api({ client: generated })
  const session = (id: string) => createSessionClient(id, connection, api)
  return {
    api,
    sessions: {
      create: async (body = {}) => {
        const headers = { 'Idempotency-Key': newKey() }
        const { id } = await repeated((signal) => api.createSession({ body, headers, signal }), SOME_PATIENCE)
        return session(id)
      },
    },
    session,
  }
}
