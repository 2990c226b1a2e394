import { agentVersionEndpoints } from '../../contract/agent-versions.ts'
import { agentEndpoints, CreateAgentRequest } from '../../contract/agents.ts'
import { copyAgent, createAgent, importAgent, putAgent } from '../../domain/agents/create.ts'
import { markedAsMissing, parseAgentDocument } from '../../domain/agents/document/parse.ts'
import { documentFileName, renderAgentDocument } from '../../domain/agents/document/render.ts'
import { listAgents, listSummaries } from '../../domain/agents/list.ts'
import { previewAgent } from '../../domain/agents/preview.ts'
import { getAgent } from '../../domain/agents/read.ts'
import { archiveAgent, patchAgent } from '../../domain/agents/update.ts'
import { diffVersions, getVersion, listVersions, restoreVersion } from '../../domain/agents/versions.ts'
import type { Deps } from '../../domain/deps.ts'
import type { Actor } from '../../domain/kit/actor.ts'
import { invalid } from '../../domain/kit/errors.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'
import { parse } from '../http/parse.ts'
import { checkText } from '../http/text.ts'

export function agentRoutes(handle: Handle, deps: Deps): void {
  handle(agentEndpoints.list, async ({ actor, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(listAgents(deps, actor, query))),
  )
  // Before the operation whose path has an id in this place.
  handle(agentEndpoints.summaries, async ({ actor, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(listSummaries(deps, actor, query))),
  )
  handle(agentEndpoints.create, async ({ actor, body, once }) => {
    const { created, agent } = await once((attempt) => createAgent(deps, actor, body, attempt))
    return reply(created ? 201 : 200, agent)
  })
  handle(agentEndpoints.import, async ({ actor, body, ctx, once }) => {
    const { input, marked } = await readDocument(deps, actor, body, ctx.request.type)
    return reply(201, await once((attempt) => importAgent(deps, actor, input, marked, attempt)))
  })
  handle(agentEndpoints.preview, async ({ actor, body }) => reply(200, await previewAgent(deps, actor, body)))
  handle(agentEndpoints.get, async ({ actor, params }) => reply(200, await getAgent(deps, actor, params.agent_id)))
  handle(agentEndpoints.put, async ({ actor, params, body }) => {
    if (body.id && body.id !== params.agent_id) throw invalid('id: must be the one in the path, or be left out')
    const { created, agent } = await putAgent(deps, actor, params.agent_id, body)
    return reply(created ? 201 : 200, agent)
  })
  handle(agentEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchAgent(deps, actor, params.agent_id, body)),
  )
  handle(agentEndpoints.archive, async ({ actor, params }) => {
    await archiveAgent(deps, actor, params.agent_id)
    return reply(204, undefined)
  })
  handle(agentEndpoints.copy, async ({ actor, params, once }) =>
    reply(201, await once((attempt) => copyAgent(deps, actor, params.agent_id, attempt))),
  )
  handle(agentEndpoints.export, async ({ actor, params }) => {
    const agent = await getAgent(deps, actor, params.agent_id)
    return reply(200, renderAgentDocument(agent), {
      'Content-Type': 'text/markdown; charset=utf-8',
      'Content-Disposition': `attachment; filename="${documentFileName(agent.name)}"`,
    })
  })
}

export function agentVersionRoutes(handle: Handle, deps: Deps): void {
  handle(agentVersionEndpoints.list, async ({ actor, params, query }) =>
    reply(200, { data: await listVersions(deps, actor, params.agent_id, query) }),
  )
  handle(agentVersionEndpoints.get, async ({ actor, params }) =>
    reply(200, await getVersion(deps, actor, params.agent_id, params.version)),
  )
  handle(
    agentVersionEndpoints.diff,
    async ({ actor, params: { agent_id, version }, query: { from = version - 1 } }) => {
      if (from < 1) throw invalid('from: is required for version 1, which has none before')
      return reply(200, await diffVersions(deps, actor, agent_id, { from, to: version }))
    },
  )
  handle(agentVersionEndpoints.restore, async ({ actor, params, body }) => {
    const restored = { version: params.version, note: body.version_note }
    return reply(200, await restoreVersion(deps, actor, params.agent_id, restored))
  })
}

/**
 * Parses a document and checks it like a create request, but for the name, which it need not have. `marked` is what it
 * says is missing.
 */
async function readDocument(deps: Deps, { organizationId }: Actor, text: string, contentType: string | undefined) {
  const reader = { threads: deps.threads.documents, owner: await deps.owners.ownerOf(organizationId) }
  const document = await parseAgentDocument(reader, text, contentType)
  // Characters that JSON and YAML write as escapes appear only after parsing.
  checkText(document, 'The document')
  const input = parse(CreateAgentRequest, { name: nameOfNow(), ...document }, 'The document')
  return { input, marked: markedAsMissing(document, input) }
}

/** Returns a name such as `agent-20261121-184500`, from the current time in UTC. */
const nameOfNow = (): string =>
  `agent-${new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-')}`
