import type { Session } from 'agent-session-client'
import { Menu } from '../../parts/menu.ts'
import { api } from '../../service.ts'
import { html, type VNode } from '../../ui.ts'

type Props = { session: Pick<Session, 'id' | 'approved_tools'>; reload(): void }

/** Menu of the tools that a person lets run without asking in the session, each with the way back. */
export function ApprovedTools({ session: { id, approved_tools: names }, reload }: Props): VNode | null {
  if (names.length === 0) return null
  const withdraw = async (name: string) => {
    await api.sessions.update({ session_id: id, approved_tools: names.filter((other) => other !== name) })
    reload()
    return `${name} asks again.`
  }
  const items = names.map((name) => ({ label: `Ask again before ${name}`, icon: 'hand', run: () => withdraw(name) }))
  const text = names.length === 1 ? '1 tool does not ask' : `${names.length} tools do not ask`
  return html`<${Menu} label=${text} icon="check" text=${text} items=${items} />`
}
