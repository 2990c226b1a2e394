import type { Session, SessionTree } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { Dialog } from '../../parts/dialog.ts'
import { Icon } from '../../parts/icon.ts'
import { SessionBadge, titleOf } from '../../parts/session-title.ts'
import { Time } from '../../parts/time.ts'
import { link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, useState, type VNode } from '../../ui.ts'

type Node = SessionTree['data'][number] & { depth: number }

/** Origin of a fork, and the tree of forks. Nothing for a session without forks. */
export function Forks({ session }: { session: Session }): VNode | null {
  const { id, forked_from } = session
  const { value } = useLoad(async () => (await api.sessions.getSessionTree({ session_id: id })).data, [id])
  const [isOpen, setOpen] = useState(false)
  const tree = nodesOf(value ?? [])
  const origin = tree.find((node) => node.id === forked_from?.session_id)
  if (value === undefined || (tree.length < 2 && !forked_from)) return null
  return html`<span class="forks"><${Icon} name="fork" />
    ${forked_from && html`<span>${origin ? html`Forked from <a class="clipped" dir="auto" href=${originPlace(forked_from)}>${nameOf(origin)}</a>` : 'Forked from a session that was deleted'}${forked_from.data_as_of === 'snapshot' ? ', with the files of that turn' : ', with the files of when it was forked'}</span>`}
    ${tree.length > 1 && html`<button type="button" class="plain" onClick=${() => setOpen(true)}>${tree.length === 2 ? '1 fork' : `${tree.length - 1} forks`}</button>`}
    ${isOpen && html`<${Tree} nodes=${tree} current=${id} onClose=${() => setOpen(false)} />`}
  </span>`
}

const nameOf = ({ title }: Pick<Node, 'title'>): string => titleOf({ title, preview: null })

/** Returns the address of the turn at which a session was forked. */
function originPlace({ session_id, turn_id, message_id }: NonNullable<Session['forked_from']>): string {
  const turn = message_id?.replace('message_', 'turn_') ?? turn_id
  return `${link('sessions', session_id)}${turn ? `?turn=${turn}` : ''}`
}

function Tree({ nodes, current, onClose }: { nodes: Node[]; current: string; onClose(): void }): VNode {
  return html`<${Dialog} title="Forks" className="broad" onClose=${onClose}>
    <ul class="fork-tree">${nodes.map(
      (node) => html`<li key=${node.id} style=${{ paddingInlineStart: `${Math.min(node.depth, 8) * 20}px` }}>
        <${Icon} name=${node.depth === 0 ? 'session' : 'fork'} />
        <a class="pane-title" dir="auto" href=${link('sessions', node.id)} aria-current=${node.id === current ? 'page' : undefined} onClick=${onClose}>${nameOf(node)}</a>
        <${SessionBadge} session=${node} /><${Time} at=${node.created_at} />
      </li>`,
    )}</ul>
  <//>`
}

/** Returns the sessions of a tree, each followed by its forks. A fork of a deleted session stands at the top. */
function nodesOf(sessions: SessionTree['data']): Node[] {
  const forks = new Map<string, SessionTree['data']>()
  const ids = new Set(sessions.map(({ id }) => id))
  for (const session of sessions) {
    const from = session.forked_from?.session_id
    const parent = from !== undefined && ids.has(from) ? from : ''
    forks.set(parent, [...(forks.get(parent) ?? []), session])
  }
  const below = (parent: string, depth: number): Node[] =>
    (forks.get(parent) ?? []).flatMap((session) => [{ ...session, depth }, ...below(session.id, depth + 1)])
  return below('', 0)
}
