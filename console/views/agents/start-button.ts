import { ActionButton } from '../../parts/page.ts'
import { go, link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'
import { mayLeave } from '../../unsaved.ts'

/** Starts a session with an agent, and opens it. */
export function StartButton({ agentId }: { agentId: string }): VNode {
  const start = async () => {
    if (!mayLeave()) return
    const { id } = await api.sessions.create({ agent_id: agentId })
    go(link('sessions', id))
  }
  return html`<${ActionButton} run=${start}>Start a session<//>`
}
