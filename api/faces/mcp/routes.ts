import { listAgentNames } from '../../../domain/agents/named.ts'
import type { Deps } from '../../../domain/deps.ts'
import { notFound } from '../../../domain/kit/errors.ts'
import { type Handle, reply } from '../../http/handle.ts'
import { readIdempotencyKey } from '../../http/read-request.ts'
import type { FaceOptions } from '../face-options.ts'
import { MAX_OFFERED_AGENTS, type OfferedAgent, offerAgents } from './agent-enum.ts'
import { mcpFaceEndpoints, resourceMetadataEndpoint } from './contract.ts'
import { answerMessage } from './exchange.ts'
import type { Face } from './face.ts'
import { describeResource } from './resource.ts'

/** Serves the Model Context Protocol at /v1/mcp, by the same operations as the other routes. */
export function mcpRoutes(handle: Handle, deps: Deps, { version, apiPrefix, streams }: FaceOptions): void {
  handle(mcpFaceEndpoints.exchange, async ({ actor, credential, body, ctx }) => {
    const face = { deps, streams, ctx, actor, credential, idempotencyKey: readIdempotencyKey(ctx) }
    await answerMessage(face, body, { agents: isListing(body) ? await listOffered(face) : [], version })
    return undefined
  })
  // The prefix /api is ignored on every route.
  const path = `${apiPrefix}${mcpFaceEndpoints.exchange.path}`
  const paths = [path, `/api${path}`].map((known) => known.slice(1))
  handle(resourceMetadataEndpoint, async ({ params, ctx }) => {
    if (!paths.includes(params.path)) throw notFound('Protected resource')
    return reply(200, describeResource(ctx, deps.auth, `/${params.path}`))
  })
}

const isListing = (message: unknown): boolean =>
  typeof message === 'object' && message !== null && 'method' in message && message.method === 'tools/list'

const listOffered = async ({ deps, actor }: Face): Promise<OfferedAgent[]> =>
  offerAgents(await listAgentNames(deps, actor, MAX_OFFERED_AGENTS))
