import { llmModelEndpoints } from '../../contract/llm-models.ts'
import type { Deps } from '../../domain/deps.ts'
import { createModel } from '../../domain/models/llm-models/create.ts'
import { listModels, listModelsOf } from '../../domain/models/llm-models/list.ts'
import { getModel } from '../../domain/models/llm-models/read.ts'
import { deleteModel, patchModel } from '../../domain/models/llm-models/update.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function llmModelRoutes(handle: Handle, deps: Deps): void {
  handle(llmModelEndpoints.list, async ({ actor, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(listModels(deps, actor, query))),
  )
  handle(llmModelEndpoints.get, async ({ actor, params }) => reply(200, await getModel(deps, actor, params.id)))
  handle(llmModelEndpoints.patch, async ({ actor, params, body }) =>
    reply(200, await patchModel(deps, actor, params.id, body)),
  )
  handle(llmModelEndpoints.delete, async ({ actor, params }) => {
    await deleteModel(deps, actor, params.id)
    return reply(204, undefined)
  })
  handle(llmModelEndpoints.listOfProvider, async ({ actor, params, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listModelsOf(deps, actor, params.provider_id, query))),
  )
  handle(llmModelEndpoints.create, async ({ actor, params, body, once }) =>
    reply(201, await once((attempt) => createModel(deps, actor, params.provider_id, body, attempt))),
  )
}
