import type { AgentId } from '../../contract/kit/ids.ts'
import type { CreateSessionRequest, Session } from '../../contract/sessions.ts'
import type { AgentCapabilityConfig } from '../../contract/tools.ts'
import type { Prisma } from '../../prisma/generated/client.ts'
import { checkCapabilities, checkPrompt, checkVersion, requireActiveAgent, requireModel } from '../agents/check.ts'
import { checkAgentTools, checkTools } from '../agents/check-tools.ts'
import type { Deps } from '../conversation/deps.ts'
import type { Actor } from '../kit/actor.ts'
import { createOnce } from '../kit/create-once.ts'
import { invalid } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { asUuid, DEFAULT_HARNESS_UUID } from '../kit/ids.ts'
import type { MountedFile } from '../session-data/files/file-change.ts'
import { mountFiles } from '../session-data/files/mount.ts'
import { resolveCapabilities } from '../tools/capabilities/resolve.ts'
import { readCapabilities } from '../tools/registry/read.ts'
import { agentPartOf } from './agent-part.ts'
import { findSession, getSession } from './read.ts'

/** Inserts rows that belong to a new session, in its transaction. */
type Alongside = (db: Prisma.TransactionClient) => Promise<unknown>

/**
 * Creates a session. Throws `invalid` for an agent, a model or a capability that does not exist, for an archived agent,
 * and for a tool that cannot work.
 */
export async function createSession(
  deps: Deps,
  actor: Actor,
  input: CreateSessionRequest,
  attempt: CreationAttempt = {},
): Promise<Session> {
  return createOnce(attempt, {
    find: (uuid) => findSession(deps, actor, uuid),
    insert: (uuid) => insertSession(deps, actor, uuid, input),
  })
}

/** Inserts a session with the rows that belong to it. Throws as `createSession` does. */
export async function insertSession(
  deps: Deps,
  actor: Actor,
  id: string,
  input: CreateSessionRequest,
  alongside?: Alongside,
): Promise<Session> {
  if (input.agent_version != null && !input.agent_id) throw invalid('agent_version: needs an agent_id')
  if (input.agent_version != null && input.draft_prompt != null)
    throw invalid('agent_version: must be absent beside draft_prompt, which its turns run instead of a version')
  checkPrompt(input.draft_prompt, 'draft_prompt')
  const modelId = await requireModel(deps, actor, input.model_id, 'model_id')
  const named = input.capabilities ?? []
  await checkCapabilities(deps, actor, named)
  const found = input.agent_id && (await checkAgentOfSession(deps, actor, input.agent_id, input.agent_version))
  const agent = agentPartOf(found || null, input.draft_prompt != null)
  const refs = [...agent.capabilities, ...named]
  const known = await readCapabilities(deps, actor.organizationId, refs)
  checkAgentTools(agent.tools, input.tools ?? [], { refs, known }, { refs: agent.capabilities, known })
  await checkTools(deps, actor, input.tools ?? [], { what: 'session', refs, known })
  const row = {
    id,
    organizationId: actor.organizationId,
    agentId: input.agent_id ?? null,
    agentVersion: input.agent_version ?? null,
    harnessId: input.harness_id ?? DEFAULT_HARNESS_UUID,
    modelId: modelId ?? null,
    title: input.title ?? null,
    tags: input.tags ?? [],
    // Parsed by the contract; Prisma's JSON input type does not accept `unknown`.
    capabilities: (input.capabilities ?? []) as Prisma.InputJsonValue,
    tools: (input.tools ?? []) as Prisma.InputJsonValue,
    draftPrompt: input.draft_prompt ?? null,
    snapshotsSince: input.snapshots ? 0 : null,
  }
  await insertRows(deps, row, filesOf(deps, refs), alongside)
  return getSession(deps, actor, asUuid(id))
}

/** Inserts a session and all that belongs to it in one transaction, unless another run of the request has done so. */
async function insertRows(
  deps: Deps,
  row: Prisma.SessionCreateManyInput,
  files: MountedFile[],
  alongside: Alongside | undefined,
): Promise<void> {
  const insert = (db: Prisma.TransactionClient) => db.session.createMany({ data: [row], skipDuplicates: true })
  if (files.length === 0 && alongside === undefined) {
    await insert(deps.db)
    return
  }
  await deps.db.$transaction(async (db) => {
    const { count } = await insert(db)
    if (count === 0) return
    if (files.length > 0) await mountFiles(db, { organizationId: row.organizationId, sessionId: row.id }, files)
    await alongside?.(db)
  })
}

/** Returns the files of the capabilities for a new session. Only built-in capabilities have files. */
const filesOf = (deps: Deps, refs: AgentCapabilityConfig[]): MountedFile[] =>
  resolveCapabilities(refs, deps.capabilities).flatMap(({ capability }) => capability.files ?? [])

/** Returns the agent of a new session, as its version has it. Throws `invalid`. */
async function checkAgentOfSession(deps: Deps, actor: Actor, agentId: AgentId, version: number | null | undefined) {
  const agent = await requireActiveAgent(deps, actor, agentId, 'agent_id')
  return version == null ? agent : checkVersion(deps, actor, agentId, version)
}
