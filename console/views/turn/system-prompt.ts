import type { Turn } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { Fold } from '../../parts/fold.ts'
import { LongText } from '../../parts/long-text.ts'
import { Problem, Quiet } from '../../parts/page.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'

/** `hash` is the SHA-256 of the prompt that was sent. Calls of earlier releases have none. */
type Props = { turn: Turn; hash: string | null | undefined }

/** System prompt of a turn's model call. It is read once it is opened. */
export const SystemPrompt = ({ turn, hash }: { turn: Turn | undefined; hash: Props['hash'] }): VNode | null =>
  turn?.agent_id && turn.agent_version
    ? html`<${Fold} className="earlier" summary="System prompt" content=${() => html`<${Prompt} turn=${turn} hash=${hash} />`} />`
    : null

function Prompt({ turn, hash }: Props): VNode {
  const { value, error } = useLoad(() => readPrompt(turn), [turn.id])
  if (value === undefined)
    return error === undefined ? html`<${Quiet}>Loading…<//>` : html`<${Problem} error=${error} />`
  const by = `version ${turn.agent_version} of the agent`
  return html`<${LongText} text=${value.text} label="System prompt" />
    <p class="quiet">${
      !value.isComposed
        ? `Prompt of ${by}, without the instructions that its capabilities add: one of them cannot be read.`
        : hash && value.hash === hash
          ? 'As it was sent.'
          : `Composed from ${by}${hash && value.hash ? '. It is not what was sent' : ''}: instructions of capabilities are the current ones, and instructions in the session’s files are left out.`
    }</p>`
}

/** Composes the prompt again as models get it. A capability that can no longer be used makes that impossible. */
async function readPrompt({
  session_id,
  agent_id,
  agent_version,
}: Turn): Promise<{ text: string; isComposed: boolean; hash?: string | undefined }> {
  const path = { agent_id: agent_id ?? '', version: agent_version ?? 1 }
  const [version, session] = await Promise.all([api.agents.getAgentVersion(path), api.sessions.get({ session_id })])
  const system_prompt = session.draft_prompt ?? version.system_prompt
  const ofAgent = session.draft_prompt == null ? version.capabilities : []
  const named = [...ofAgent, ...session.capabilities].filter(({ missing }) => !missing)
  const capabilities = named.map(({ ref, config }) => ({ ref, config }))
  try {
    const preview = await api.agents.preview({ system_prompt, capabilities })
    return { text: preview.system_prompt, isComposed: true, hash: preview.system_prompt_sha256 }
  } catch {
    return { text: system_prompt, isComposed: false }
  }
}
