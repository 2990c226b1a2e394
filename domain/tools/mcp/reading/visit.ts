import { isRecord } from '../../../../lib/is-record.ts'
import { ANY_RESULT } from '../listing/any-result.ts'
import type { McpEndpoint, Visit, VisitedServer } from '../protocol/client.ts'
import type { Connection } from '../protocol/connection.ts'
import { LimitError } from '../protocol/failure.ts'
import { type ToServers, withConnection } from '../protocol/with-connection.ts'

/** Visits a server. See `McpClient.visit`. */
export const visit = <T>(connecting: ToServers, endpoint: McpEndpoint, purpose: Visit<T>, signal: AbortSignal) =>
  withConnection(connecting, endpoint, purpose, signal, (connection, ended) =>
    purpose.run(visited(connection, { signal: ended, timeout: connecting.times.discover })),
  )

const visited = ({ client, redact }: Connection, options: { signal: AbortSignal; timeout: number }): VisitedServer => ({
  redact,
  offers: (part) => isRecord(client.getServerCapabilities()?.[part]),
  ask: async (method, params) => {
    const request = { method, params }
    const result: unknown = await client.request(request, ANY_RESULT, { ...options, allowInputRequired: true })
    if (!isRecord(result)) throw new LimitError('sent a result that the protocol does not allow.')
    if (result.resultType === 'input_required') {
      throw new LimitError('asks its user a question here, which only calls of tools can answer.')
    }
    // A cursor is for the server only, and must return to it unchanged.
    const { nextCursor, ...rest } = result
    return { ...redact(rest), nextCursor }
  },
})
