import type { AgentVersion } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { Badge } from '../../parts/badge.ts'
import { confirmed } from '../../parts/dialog.ts'
import { ActionButton, Page, Problem } from '../../parts/page.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { Time } from '../../parts/time.ts'
import { go, link, route } from '../../router.ts'
import { api, readAnywhere } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'
import { Author } from './author.ts'
import { Changes } from './changes.ts'

const PAGE = 20

const placeOf = (agentId: string, version: number): string =>
  `${link('agents', agentId, 'versions')}?version=${version}`

/** Versions of an agent at `#/agents/<id>/versions`, newest first, beside the changes of one. */
export function Versions({ agentId }: { agentId: string }): VNode {
  const path = { agent_id: agentId }
  const { value: agent, error } = useLoad(
    () => readAnywhere(`/v1/agents/${encodeURIComponent(agentId)}`, () => api.agents.get(path)),
    [agentId],
  )
  const [pages, setPages] = useState(1)
  const { value: versions, error: lost, reload } = useLoad(() => readVersions(agentId, pages * PAGE), [agentId, pages])
  const chosen = Number(route.value.query.get('version')) || versions?.[0]?.version
  const restored = () => {
    reload()
    go(link('agents', agentId, 'versions'), { replace: true })
  }
  return html`<${Page} title=${agent ? `Versions of ${agent.name}` : 'Versions'} back=${{ title: agent?.name ?? 'Agent', href: link('agents', agentId) }}>
    <${Problem} error=${error ?? lost} />
    ${versions === undefined && (error ?? lost) === undefined && html`<${Skeleton} />`}
    ${
      versions &&
      html`<div class="versions">
        <div><ol class="version-list" aria-label="Versions">${versions.map(
          (version) =>
            html`<${Item} key=${version.version} agentId=${agentId} version=${version} isNewest=${version === versions[0]} isChosen=${version.version === chosen} />`,
        )}</ol>
        ${versions.length === pages * PAGE && html`<button type="button" onClick=${() => setPages(pages + 1)}>Show more</button>`}</div>
        ${chosen !== undefined && html`<${One} key=${chosen} agentId=${agentId} version=${chosen} newest=${versions[0]?.version ?? chosen} onRestored=${restored} />`}
      </div>`
    }
  <//>`
}

async function readVersions(agent_id: string, most: number): Promise<AgentVersion[]> {
  const found: AgentVersion[] = []
  while (found.length < most) {
    const { data } = await api.agents.listAgentVersions({ agent_id, limit: PAGE, before: found.at(-1)?.version })
    found.push(...data)
    if (data.length < PAGE) break
  }
  return found
}

type ItemProps = { agentId: string; version: AgentVersion; isNewest: boolean; isChosen: boolean }

function Item({ agentId, version: one, isNewest, isChosen }: ItemProps): VNode {
  const { version, note, user_id, api_key_id, created_at } = one
  const choose = (event: Event) => {
    event.preventDefault()
    go(placeOf(agentId, version), { replace: true })
  }
  return html`<li><a href=${placeOf(agentId, version)} aria-current=${isChosen ? 'true' : undefined} onClick=${choose}>
    <span class="version-head"><strong>Version ${version}</strong> ${isNewest && html`<${Badge} status="newest" word="Newest" tone="brand" icon="check" />`}</span>
    ${note && html`<span class="one-line" dir="auto" title=${note}>${note}</span>`}
    <span class="quiet"><${Author} userId=${user_id} apiKeyId=${api_key_id} />, <${Time} at=${created_at} /></span></a></li>`
}

type OneProps = { agentId: string; version: number; newest: number; onRestored(): void }

/** Changes of a version: from the one before, or up to the newest. */
function One({ agentId, version, newest, onRestored }: OneProps): VNode {
  const [isToNewest, setToNewest] = useState(false)
  const [from, to] = isToNewest ? [version, newest] : [version - 1, version]
  const { value, error } = useLoad(async () => {
    const [diff, models] = await Promise.all([
      from < 1 ? undefined : api.agents.diffAgentVersions({ agent_id: agentId, version: to, from }),
      api.models.list({ include_stale: true }),
    ])
    return { changes: diff?.changes, models: new Map(models.data.map(({ id, display_name }) => [id, display_name])) }
  }, [agentId, from, to])
  const restore = async () => {
    const title = `Restore version ${version}?`
    const text = 'The agent gets all that it had then, as a new version. Nothing is lost.'
    if (!(await confirmed({ title, text, action: 'Restore' }))) return
    await api.agents.restoreAgentVersion({ agent_id: agentId, version, version_note: null })
    onRestored()
  }
  const isOld = version < newest
  return html`<section class="version" aria-labelledby="version">
    <div class="try-head"><h2 id="version">${isToNewest ? `From version ${version} to ${newest}` : `Version ${version}`}</h2>
      ${
        isOld &&
        html`<div class="actions">
          <button type="button" aria-pressed=${isToNewest} onClick=${() => setToNewest(!isToNewest)}>Compare with the newest</button>
          <${ActionButton} icon="again" run=${restore}>Restore<//></div>`
      }</div>
    <${Problem} error=${error} />
    ${value === undefined && error === undefined && html`<${Skeleton} />`}
    ${value && value.changes === undefined && html`<p class="quiet">The first version.</p>`}
    ${value?.changes?.length === 0 && html`<p class="quiet">Nothing differs.</p>`}
    ${value?.changes && html`<${Changes} changes=${value.changes} modelNameOf=${(id: string) => value.models.get(id) ?? id} />`}
  </section>`
}
