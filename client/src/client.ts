import { type ClientOptions, createConnection } from './connection.ts'
import { type Operations, table } from './generated/operations.ts'
import type { CreateSessionRequest, StreamedOrganizationEvent } from './generated/types.gen.ts'
import { type CallOptions, createOperations } from './operation.ts'
import { followEvents, type OrganizationEventOptions } from './organization.ts'
import { repeated, SOME_PATIENCE } from './retry.ts'
import { type ServeOptions, serveTools } from './serve-tools.ts'
import { createSessionClient, newKey, type SessionClient } from './session.ts'

/** All operations by the tags of the API reference, and functions that follow sessions. */
export type Client = Omit<Operations, 'sessions'> & {
  sessions: Omit<Operations['sessions'], 'create'> & {
    /** Creates a session, once even if the request must be repeated. */
    create(session?: CreateSessionRequest, options?: CallOptions): Promise<SessionClient>
  }
  session(id: string): SessionClient
  /**
   * Yields what happens in all sessions of the organization, in order and each once, until the signal aborts. An event of
   * the type `gap` says that earlier ones were deleted. Throws ApiError if reconnecting cannot help.
   */
  followEvents(options?: OrganizationEventOptions): AsyncGenerator<StreamedOrganizationEvent, void, undefined>
  /**
   * Answers the calls of client-side tools in all sessions of an agent, until the signal aborts. Of several such programs,
   * one runs each call. Throws ApiError if reconnecting cannot help.
   */
  serveTools(options: ServeOptions): Promise<void>
}

/** Creates a client. It opens no connection before the first request. */
export function createClient(options: ClientOptions): Client {
  const connection = createConnection(options)
  // The table and the type are generated together.
  const operations = createOperations(table, connection) as Operations
  const session = (id: string) => createSessionClient(id, connection, operations)
  return {
    ...operations,
    sessions: {
      ...operations.sessions,
      create: async (body = {}, { signal, ...more } = {}) => {
        const once = { idempotencyKey: newKey(), ...more }
        const create = (limited: AbortSignal) => operations.sessions.create(body, { ...once, signal: limited })
        const { id } = await repeated(create, SOME_PATIENCE, signal)
        return session(id)
      },
    },
    session,
    followEvents: (options) => followEvents(connection, options),
    serveTools: (options) => serveTools(connection, operations, options),
  }
}
