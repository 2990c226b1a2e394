import { llmModelEndpoints } from '../../contract/llm-models.ts'
import type { Deps } from '../../domain/deps.ts'
import { getLlmModel, listLlmModels } from '../../domain/llm-models/read.ts'
import { type Handle, reply } from '../http/handle.ts'

export function llmModelRoutes(handle: Handle, deps: Deps): void {
  handle(llmModelEndpoints.list, async () => reply(200, { data: listLlmModels(deps) }))
  handle(llmModelEndpoints.get, async ({ params }) => reply(200, getLlmModel(deps, params.id)))
}
