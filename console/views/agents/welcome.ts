import type { CreateAgentRequest, LlmModelWithProvider } from 'agent-session-client'
import { commandFor } from '../../parts/command.ts'
import { Empty } from '../../parts/empty.ts'
import { ActionButton } from '../../parts/page.ts'
import { go, link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'

const SCRIPTED = 'llmsim-script'
const PROMPT =
  'You write what you are asked for into files of the session, and say in one sentence what you have written.'

/** Script of the simulated model, which ignores its input. */
const SCRIPT = [
  {
    thinking: 'A file is wanted. I write one.',
    text: 'I write it down.',
    tool_calls: [
      {
        name: 'write_file',
        arguments: { path: '/hello.md', content: '# Hello\n\nA simulated model wrote this file.\n' },
      },
    ],
    tokens_per_second: 30,
  },
  { text: 'Done: **/hello.md** is among the files of this session.', tokens_per_second: 30 },
]

/** Reports whether the default model is simulated. */
export const isSimulated = (models: LlmModelWithProvider[]): boolean =>
  models.find(({ is_default }) => is_default)?.provider_type === 'llmsim'

/** Shown to users without agents. */
export function Welcome({ models }: { models: LlmModelWithProvider[] }): VNode {
  const make = async () => {
    const { id } = await api.agents.create(exampleFor(models))
    const session = await api.sessions.create({ agent_id: id, title: 'A first session' })
    go(link('sessions', session.id))
  }
  return html`<${Empty} icon="agent" title="No agents yet" code=${commandFor('/v1/agents', { name: 'Writer', system_prompt: 'You write short texts.' })}
    about="An agent is a prompt, a model and what it may use. A session is a conversation with it."
    action=${html`<${ActionButton} className="primary" run=${make}>Try an example<//>
      <a class="button" href=${link('agents', 'new')}>Make your own</a>`} />`
}

/** Example agent that writes files. It uses the default model, or a scripted one if the default is simulated. */
function exampleFor(models: LlmModelWithProvider[]): CreateAgentRequest {
  const agent = {
    name: 'Writer',
    description: 'Writes files. Ask it for one.',
    capabilities: [{ ref: 'session_file_system' }],
  }
  if (!isSimulated(models)) return { ...agent, system_prompt: PROMPT }
  const system_prompt = `${PROMPT}\n\n\`\`\`llmsim\n${JSON.stringify(SCRIPT, null, 2)}\n\`\`\``
  const default_model_id = models.find(({ model_id }) => model_id === SCRIPTED)?.id
  return { ...agent, system_prompt, default_model_id }
}

/** Note that no provider has a key yet. */
export const SimulatedNote = (): VNode => html`<p class="quiet">
  A simulated model is the default. Add a <a href=${link('llm-providers')}>provider</a> and make one of ${'its '}<a href=${link('llm-models')}>models</a> the default.
</p>`
