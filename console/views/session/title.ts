import type { Session } from 'agent-session-client'
import { Badge } from '../../parts/badge.ts'
import { html, type VNode } from '../../ui.ts'

/** Returns the name of a session: its title, or its first message. */
export const titleOf = ({ title, preview }: Pick<Session, 'title' | 'preview'>): string =>
  title || preview || 'Untitled session'

type Props = { session: Pick<Session, 'status' | 'last_turn_status'>; isShort?: boolean }

/** Status of a session: of its last turn, if that one failed. */
export function SessionBadge({ session: { status, last_turn_status }, isShort }: Props): VNode {
  const isFailed = status === 'idle' && last_turn_status === 'failed'
  const word = status === 'active' ? { word: 'Working' } : {}
  return html`<${Badge} status=${isFailed ? 'failed' : status} isShort=${isShort} ...${word} />`
}
