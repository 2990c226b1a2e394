import { wantsToLeave } from '../../parts/leave.ts'
import { ActionButton } from '../../parts/page.ts'
import { go, link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'

/** Starts a session with an agent, and opens it. */
export function StartButton({ agentId }: { agentId: string }): VNode {
  const start = async () => {
    if (!(await wantsToLeave())) return
    const { id } = await api.sessions.create({ agent_id: agentId })
    go(link('sessions', id))
  }
  return html`<${ActionButton} run=${start}>Start a session<//>`
}
