import { type Agent, ApiError, type CreateAgentRequest, type UpdateAgentRequest } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { Badge } from '../../parts/badge.ts'
import { CopyId } from '../../parts/copy.ts'
import { changesOf } from '../../parts/form.ts'
import { Menu } from '../../parts/menu.ts'
import { Page, Problem } from '../../parts/page.ts'
import { Skeleton } from '../../parts/skeleton.ts'
import { Time } from '../../parts/time.ts'
import { agentSteps, UseFromCode } from '../../parts/use-from-code.ts'
import { link } from '../../router.ts'
import { api, readAnywhere } from '../../service.ts'
import { html, useRef, useState, type VNode } from '../../ui.ts'
import { agentItems } from './agent-menu.ts'
import { useCatalogue } from './catalogue.ts'
import { Conflict, type Conflicting, changedSince } from './conflict.ts'
import { Editor } from './editor.ts'
import { StartButton } from './start-button.ts'

/** One agent: its settings, a chat that tries them, and its actions. */
export function AgentView({ agentId }: { agentId: string }): VNode {
  const [round, setRound] = useState(0)
  return html`<${AgentPage} key=${round} agentId=${agentId} onStartOver=${() => setRound(round + 1)} />`
}

type Props = { agentId: string; onStartOver(): void }

function AgentPage({ agentId, onStartOver }: Props): VNode {
  const path = { agent_id: agentId }
  const [conflict, setConflict] = useState<Conflicting | undefined>(undefined)
  const { value: catalogue, error: lost } = useCatalogue()
  const {
    value: agent,
    error,
    reload,
  } = useLoad(() => readAnywhere(`/v1/agents/${encodeURIComponent(agentId)}`, () => api.agents.get(path)), [agentId])
  /** Version that the form began with, or has saved. */
  const version = useRef<number | undefined>(undefined)
  version.current ??= agent?.version ?? undefined
  const update = async (changes: UpdateAgentRequest, note: string | undefined, if_version: number | undefined) => {
    const saved = await api.agents.update({ ...path, ...changes, version_note: note, if_version })
    version.current = saved.version ?? undefined
    setConflict(undefined)
    reload()
    return true
  }
  const save = async (wanted: CreateAgentRequest, before: CreateAgentRequest, note: string | undefined) => {
    const { default_model_id, ...others } = changesOf(wanted, before)
    // '' removes the model: in an update, null leaves a field unchanged.
    const changes = default_model_id === undefined ? others : { ...others, default_model_id: default_model_id ?? '' }
    try {
      return await update(changes as UpdateAgentRequest, note, version.current)
    } catch (problem) {
      if (!(problem instanceof ApiError && problem.status === 409) || version.current === undefined) throw problem
      const since = await changedSince(agentId, version.current)
      // Changes of other fields do not concern each other.
      if (!since.fields.some((field) => field in changes)) return update(changes as UpdateAgentRequest, note, since.to)
      setConflict(since)
      return false
    }
  }
  /** The button submits the form, too. */
  const overwrite = () => {
    version.current = conflict?.to
  }
  const isActive = agent?.status === 'active'
  const actions =
    agent &&
    html`${isActive && html`<${StartButton} agentId=${agentId} />`}
      <a class="button" href=${link('agents', agentId, 'versions')}>Versions</a>
      <${UseFromCode} steps=${agentSteps(agentId)} />
      <${Menu} label="More actions" items=${agentItems(agent, { isHere: true, reload })} />`
  const isReady = agent !== undefined && catalogue !== undefined
  return html`<${Page} title=${agent?.name ?? 'Agent'} back=${{ title: 'Agents', href: link('agents') }} actions=${actions}
    badge=${agent?.status === 'archived' && html`<${Badge} status="archived" />`} facts=${agent && factsOf(agent, catalogue?.models)}>
    <${Problem} error=${error ?? lost} />
    ${agent?.status === 'archived' && html`<p class="quiet">This agent is archived: no session can begin with it.</p>`}
    ${
      isReady
        ? html`<${Editor} agent=${agent} action="Save" hasNotes save=${save} ...${catalogue}>
          ${conflict && html`<${Conflict} agentId=${agentId} conflict=${conflict} onReload=${onStartOver} onOverwrite=${overwrite} />`}<//>`
        : error === undefined && html`<${Skeleton} />`
    }
  <//>`
}

/** Facts below the agent's name. */
const factsOf = (
  { id, default_model_id, version, updated_at, usage }: Agent,
  models: { id: string; display_name: string }[] = [],
) => [
  default_model_id ? models.find((model) => model.id === default_model_id)?.display_name : 'Default model',
  version && `Version ${version}`,
  html`Changed <${Time} at=${updated_at} />`,
  usage && `${(usage.input_tokens + usage.output_tokens).toLocaleString()} tokens`,
  html`<${CopyId} id=${id} />`,
]
