import { call, modelId, type Target } from './http.ts'

/** Creates an agent whose model plays a script, and returns its id. */
export async function createScriptedAgent(target: Target, steps: object[], more: object = {}): Promise<string> {
  const system_prompt = `\`\`\`llmsim\n${JSON.stringify(steps)}\n\`\`\``
  const default_model_id = await modelId(target, 'llmsim-script')
  const agent = { name: 'A', system_prompt, default_model_id, ...more }
  const { status, body } = await call(target, 'POST', '/v1/agents', agent)
  if (status !== 201) throw new Error(`agent: ${status} ${JSON.stringify(body)}`)
  return body.id
}
