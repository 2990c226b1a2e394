import { z } from 'zod'
import { Agent, agentContent } from './agents.ts'
import { DateTime, listOf, textUpTo } from './kit/common.ts'
import { group } from './kit/endpoint.ts'
import { AgentId, wireId, wireUuid } from './kit/ids.ts'
import { limitUpTo, wholeNumber } from './kit/query.ts'

const MAX_VERSION = 2_147_483_647
/** Number of a version in a path or a query. */
const number = wholeNumber
  .refine((version) => version >= 1 && version <= MAX_VERSION, { error: 'must be the number of a version, 1 or more' })
  .meta({ type: 'integer', minimum: 1 })

const summary = {
  agent_id: wireId('agent'),
  version: z.int().min(1),
  note: z.string().nullish(),
  user_id: wireUuid.nullish().meta({ description: 'User who made it. Null: the service, or a release before 1.1.' }),
  api_key_id: wireUuid.nullish().meta({ description: 'API key by which it was made. Null for a login.' }),
  created_at: DateTime,
}

export const AgentVersion = z.object({ ...summary, name: z.string() }).meta({ id: 'AgentVersion' })
export type AgentVersion = z.infer<typeof AgentVersion>

export const AgentVersionContent = z
  .object({
    ...summary,
    ...agentContent,
  })
  .meta({ id: 'AgentVersionContent', description: 'A version with everything that an agent had at that time.' })
export type AgentVersionContent = z.infer<typeof AgentVersionContent>

export const AgentVersionChange = z
  .object({ field: z.string(), from: z.unknown(), to: z.unknown() })
  .meta({ id: 'AgentVersionChange', description: 'A field that two versions have differently.' })

export const AgentVersionDiff = z
  .object({ from: z.int().min(1), to: z.int().min(1), changes: z.array(AgentVersionChange) })
  .meta({ id: 'AgentVersionDiff' })
export type AgentVersionDiff = z.infer<typeof AgentVersionDiff>

export const RestoreAgentVersionRequest = z
  .object({ version_note: textUpTo(2048).nullish() })
  .meta({ id: 'RestoreAgentVersionRequest' })

const AgentPath = z.object({ agent_id: AgentId })
const VersionPath = z.object({ agent_id: AgentId, version: number })

export const agentVersionEndpoints = group(
  { tag: 'agents', path: '/v1/agents/{agent_id}/versions', access: 'member' },
  {
    list: {
      operationId: 'listAgentVersions',
      method: 'GET',
      summary: 'Lists the versions of an agent, newest first',
      description: 'Each change of an agent makes a version. `before` is the last version of the page before.',
      params: AgentPath,
      query: z.object({ limit: limitUpTo(100, 20), before: number.optional() }),
      responses: { 200: listOf(AgentVersion) },
    },
    get: {
      operationId: 'getAgentVersion',
      method: 'GET',
      at: '/{version}',
      summary: 'Gets a version of an agent',
      params: VersionPath,
      responses: { 200: AgentVersionContent },
    },
    diff: {
      operationId: 'diffAgentVersions',
      method: 'GET',
      at: '/{version}/diff',
      summary: 'Lists the fields that two versions have differently',
      params: VersionPath,
      query: z.object({ from: number.optional().meta({ description: 'Default: the version before.' }) }),
      responses: { 200: AgentVersionDiff },
    },
    restore: {
      operationId: 'restoreAgentVersion',
      method: 'POST',
      at: '/{version}/restore',
      summary: 'Makes a new version that is like an earlier one',
      params: VersionPath,
      body: RestoreAgentVersionRequest,
      responses: { 200: Agent },
    },
  },
)
