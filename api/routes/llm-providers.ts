import { llmProviderEndpoints } from '../../contract/llm-providers.ts'
import type { Deps } from '../../domain/deps.ts'
import { createProvider } from '../../domain/models/llm-providers/create.ts'
import { listProviders } from '../../domain/models/llm-providers/list.ts'
import { getProvider } from '../../domain/models/llm-providers/read.ts'
import { syncModels } from '../../domain/models/llm-providers/sync.ts'
import { deleteProvider, patchProvider } from '../../domain/models/llm-providers/update.ts'
import { type Handle, reply } from '../http/handle.ts'

export function llmProviderRoutes(handle: Handle, deps: Deps): void {
  handle(llmProviderEndpoints.list, async ({ actor }) => reply(200, { data: await listProviders(deps, actor) }))
  handle(llmProviderEndpoints.create, async ({ actor, body, once }) =>
    reply(201, await once((attempt) => createProvider(deps, actor, body, attempt))),
  )
  handle(llmProviderEndpoints.get, async ({ actor, params }) =>
    reply(200, await getProvider(deps, actor, params.provider_id)),
  )
  handle(llmProviderEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchProvider(deps, actor, params.provider_id, body)),
  )
  handle(llmProviderEndpoints.delete, async ({ actor, params }) => {
    await deleteProvider(deps, actor, params.provider_id)
    return reply(204, undefined)
  })
  handle(llmProviderEndpoints.sync, async ({ actor, params }) =>
    reply(200, await syncModels(deps, actor, params.provider_id)),
  )
}
