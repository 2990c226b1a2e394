import type { AgentVersion } from 'agent-session-client'
import { Time } from '../../parts/time.ts'
import { link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import { Author } from './author.ts'
import { labelsOf } from './changes.ts'

export type Conflicting = {
  /** Newest version, and what has been changed up to it. */
  to: number
  fields: string[]
  versions: AgentVersion[]
}

/** Versions that are named. */
const MAX_VERSIONS = 20

/** Reads what has been changed since a version. */
export async function changedSince(agent_id: string, from: number): Promise<Conflicting> {
  const { data } = await api.agents.listAgentVersions({ agent_id, limit: MAX_VERSIONS })
  const to = data[0]?.version ?? from
  const { changes } = await api.agents.diffAgentVersions({ agent_id, version: to, from })
  return { to, fields: changes.map(({ field }) => field), versions: data.filter(({ version }) => version > from) }
}

type Props = { agentId: string; conflict: Conflicting; onReload(): void; onOverwrite(): void }

/** Says who has changed the agent meanwhile, and offers both ways on. */
export const Conflict = ({
  agentId,
  conflict,
  onReload,
  onOverwrite,
}: Props): VNode => html`<section class="conflict" role="alert" aria-labelledby="conflict">
  <h2 id="conflict">Somebody else has changed this agent</h2>
  <ul>${conflict.versions.map(
    ({ version, note, user_id, api_key_id, created_at }) =>
      html`<li key=${version}>Version ${version}, <${Author} userId=${user_id} apiKeyId=${api_key_id} />, <${Time} at=${created_at} />${note && html`: <span dir="auto">${note}</span>`}</li>`,
  )}</ul>
  <p>Changed: ${labelsOf(conflict.fields)}. Your changes are not stored yet.</p>
  <div class="actions">
    <a class="button" href=${link('agents', agentId, 'versions')} target="_blank" rel="noopener">Compare</a>
    <button type="button" onClick=${onReload}>Reload, and lose my changes</button>
    <button class="danger" onClick=${onOverwrite}>Overwrite with mine</button>
  </div>
</section>`
