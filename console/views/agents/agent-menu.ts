import type { AgentSummary } from 'agent-session-client'
import { wantsToLeave } from '../../parts/leave.ts'
import type { MenuItem } from '../../parts/menu.ts'
import { saveFile } from '../../parts/save-file.ts'
import { go, link } from '../../router.ts'
import { api, fetchBlob } from '../../service.ts'

type Options = {
  /** Whether the menu is on the agent's own page. */
  isHere?: boolean
  reload(): void
}

/** Actions on an agent. */
export function agentItems(
  { id, name, status }: Pick<AgentSummary, 'id' | 'name' | 'status'>,
  { isHere = false, reload }: Options,
): MenuItem[] {
  const agent_id = id
  const setStatus = (wanted: 'active' | 'archived') => async () => {
    await api.agents.update({ agent_id, status: wanted })
    reload()
  }
  const start = async () => {
    const session = await api.sessions.create({ agent_id })
    go(link('sessions', session.id))
  }
  const copy = async () => {
    if (!(await wantsToLeave())) return
    const { id: made } = await api.agents.copy({ agent_id })
    go(link('agents', made))
  }
  const exportFile = async () =>
    saveFile(`${name.replace(/[^\p{L}\p{N}]+/gu, '-')}.md`, await fetchBlob(`/v1/agents/${id}/export`))
  const isActive = status === 'active'
  return [
    ...(isActive && !isHere ? [{ label: 'Start a session', icon: 'play', run: start }] : []),
    { label: 'Sessions', icon: 'session', href: `${link('sessions')}?agent=${encodeURIComponent(id)}` },
    { label: 'Duplicate', icon: 'copy', run: copy },
    { label: 'Export', icon: 'download', run: exportFile },
    isActive
      ? {
          label: 'Archive',
          icon: 'archive',
          isDangerous: true,
          question: `Archive “${name}”? Its sessions stay, and it can be restored.`,
          run: setStatus('archived'),
        }
      : { label: 'Restore', icon: 'again', run: setStatus('active') },
  ]
}
