import { newUuid } from '../../domain/kit/ids.ts'
import { call, type Target } from './http.ts'
import { toUuid } from './ids.ts'
import { skillMd } from './zip.ts'

/** A model, an MCP server and a skill of an organization, as agents and sessions name them. */
export type Named = {
  model: string
  capabilities: { ref: string; config?: unknown }[]
  /** The capabilities as they are shown once all is removed. */
  missing: { ref: string; config?: unknown; missing: true }[]
  remove(): Promise<void>
}

export async function addNamed(api: Target): Promise<Named> {
  const post = async (path: string, body: object): Promise<string> => {
    const answer = await call(api, 'POST', path, body)
    if (answer.status !== 201) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return answer.body.id
  }
  const provider = await post('/v1/llm-providers', { name: newUuid(), provider_type: 'llmsim' })
  const models = `/v1/llm-providers/${provider}/models`
  const model = await post(models, { model_id: 'llmsim-lorem-7', display_name: 'Seven' })
  const server = await post('/v1/mcp-servers', { name: newUuid(), url: 'https://mcp.example/' })
  const skill = await post('/v1/skills', { skill_md: skillMd(`skill-${newUuid()}`) })
  const capabilities = [
    { ref: `mcp:${toUuid(server)}`, config: { tools: ['echo'] } },
    { ref: `skill:${toUuid(skill)}` },
  ]
  const paths = [`/v1/llm-models/${model}`, `/v1/mcp-servers/${server}`, `/v1/skills/${skill}`]
  return {
    model,
    capabilities,
    missing: capabilities.map((capability) => ({ ...capability, missing: true })),
    remove: async () => {
      for (const path of paths) await call(api, 'DELETE', path)
    },
  }
}
