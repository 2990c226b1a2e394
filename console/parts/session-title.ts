import type { Session } from 'agent-session-client'
import { html, type VNode } from '../ui.ts'
import { Badge } from './badge.ts'

/** Returns the name of a session: its title, or its first message. */
export const titleOf = ({ title, preview }: Pick<Session, 'title' | 'preview'>): string =>
  title || preview || 'Untitled session'

/** Tag of sessions that only try the settings of an agent. */
export const DRAFT = 'draft'

/** Marks a session that only tries something. */
export const DraftBadge = ({ tags, isShort }: { tags: string[]; isShort?: boolean }): VNode | false =>
  tags.includes(DRAFT) && html`<${Badge} status=${DRAFT} isShort=${isShort} />`

type Props = { session: Pick<Session, 'status' | 'last_turn_status'>; isShort?: boolean }

/** Status of a session: of its last turn, if that one failed. */
export function SessionBadge({ session: { status, last_turn_status }, isShort }: Props): VNode {
  const isFailed = status === 'idle' && last_turn_status === 'failed'
  const word = status === 'active' ? { word: 'Working' } : {}
  return html`<${Badge} status=${isFailed ? 'failed' : status} isShort=${isShort} ...${word} />`
}
