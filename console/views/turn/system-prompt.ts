import type { Turn } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { Fold } from '../../parts/fold.ts'
import { LongText } from '../../parts/long-text.ts'
import { Problem, Quiet } from '../../parts/page.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'

/** System prompt of a turn's model calls. It is read once it is opened. */
export const SystemPrompt = ({ turn }: { turn: Turn | undefined }): VNode | null =>
  turn?.agent_id && turn.agent_version
    ? html`<${Fold} className="earlier" summary="System prompt" content=${() => html`<${Prompt} turn=${turn} />`} />`
    : null

function Prompt({ turn }: { turn: Turn }): VNode {
  const { value, error } = useLoad(() => readPrompt(turn), [turn.id])
  if (value === undefined)
    return error === undefined ? html`<${Quiet}>Loading…<//>` : html`<${Problem} error=${error} />`
  return html`<${LongText} text=${value.text} label="System prompt" />
    <p class="quiet">${
      value.isComposed
        ? `Composed from version ${turn.agent_version} of the agent. Instructions that its capabilities add are the current ones.`
        : `Prompt of version ${turn.agent_version} of the agent, without the instructions that its capabilities add: one of them cannot be read.`
    }</p>`
}

/** Composes the prompt again as models get it. A capability that can no longer be used makes that impossible. */
async function readPrompt({
  session_id,
  agent_id,
  agent_version,
}: Turn): Promise<{ text: string; isComposed: boolean }> {
  const path = { agent_id: agent_id ?? '', version: agent_version ?? 1 }
  const [version, session] = await Promise.all([api.agents.getAgentVersion(path), api.sessions.get({ session_id })])
  const { system_prompt } = version
  const named = [...version.capabilities, ...session.capabilities].filter(({ missing }) => !missing)
  const capabilities = named.map(({ ref, config }) => ({ ref, config }))
  try {
    const preview = await api.agents.preview({ system_prompt, capabilities })
    return { text: preview.system_prompt, isComposed: true }
  } catch {
    return { text: system_prompt, isComposed: false }
  }
}
