import type { CreateAgentRequest, UpdateAgentRequest } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { changesOf } from '../../parts/form.ts'
import { ActionButton, Page, Problem, Quiet } from '../../parts/page.ts'
import { saveFile } from '../../parts/save-file.ts'
import { go, link } from '../../router.ts'
import { api, fetchBlob, readAnywhere } from '../../service.ts'
import { html, useRef, type VNode } from '../../ui.ts'
import { mayLeave } from '../../unsaved.ts'
import { Editor } from './editor.ts'
import { StartButton } from './start-button.ts'

/** One agent: a form for changes, and its actions. */
export function AgentView({ agentId }: { agentId: string }): VNode {
  const path = { agent_id: agentId }
  const {
    value: agent,
    error,
    reload,
  } = useLoad(() => readAnywhere(`/v1/agents/${encodeURIComponent(agentId)}`, () => api.agents.get(path)), [agentId])
  /** Agent as shown in the form: only the user's changes are sent. */
  const before = useRef<CreateAgentRequest | undefined>(undefined)
  before.current ??= agent
  const save = async (wanted: CreateAgentRequest) => {
    const { default_model_id, ...changes } = changesOf(wanted, { ...before.current })
    // In an update, null leaves a field unchanged.
    if (default_model_id === null) await api.agents.put({ ...path, ...wanted, id: agentId })
    const body = default_model_id ? { ...changes, default_model_id } : changes
    await api.agents.update({ ...path, ...(body as UpdateAgentRequest) })
    before.current = wanted
    reload()
  }
  const setStatus = (status: 'active' | 'archived') => async () => {
    await api.agents.update({ ...path, status })
    reload()
  }
  const copy = async () => {
    if (!mayLeave()) return
    const { id } = await api.agents.copy(path)
    go(link('agents', id))
  }
  const exportFile = async () =>
    saveFile(`${agent?.name.replace(/[^\p{L}\p{N}]+/gu, '-')}.md`, await fetchBlob(`/v1/agents/${agentId}/export`))
  const isActive = agent?.status === 'active'
  const actions = html`
    ${isActive && html`<${StartButton} agentId=${agentId} />`}
    <a class="button" href=${`${link('sessions')}?agent=${encodeURIComponent(agentId)}`}>Sessions</a>
    <${ActionButton} run=${copy}>Duplicate<//>
    <${ActionButton} run=${exportFile}>Export<//>
    ${
      isActive
        ? html`<${ActionButton} className="danger" run=${setStatus('archived')}
          confirm="Archive" question=${`Archive “${agent.name}”? Its sessions stay, and it can be restored.`}>Archive<//>`
        : html`<${ActionButton} run=${setStatus('active')}>Restore<//>`
    }
    <a class="button" href=${link('agents')}>Back</a>`
  return html`<${Page} title=${agent?.name ?? 'Agent'} actions=${agent && actions}>
    <${Problem} error=${error} />
    ${agent?.status === 'archived' && html`<${Quiet}>This agent is archived: no session can begin with it.<//>`}
    ${agent && html`<${Editor} agent=${agent} action="Save" done="Saved." onSubmit=${save} />`}
  <//>`
}
