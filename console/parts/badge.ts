import { html, type VNode } from '../ui.ts'
import { Icon } from './icon.ts'

/** Tone of a badge, which is its colour. */
type Tone = 'good' | 'busy' | 'wait' | 'bad' | 'quiet' | 'brand'
type Look = { word: string; icon: string; tone: Tone }

/** Statuses of turns, sessions, tools, schedules' executions and resources, as people read them. */
const LOOKS: Record<string, Look> = {
  queued: { word: 'Queued', icon: 'schedule', tone: 'quiet' },
  pending: { word: 'Pending', icon: 'schedule', tone: 'quiet' },
  active: { word: 'Running', icon: 'spinner', tone: 'busy' },
  running: { word: 'Running', icon: 'spinner', tone: 'busy' },
  waiting: { word: 'Waiting for you', icon: 'hand', tone: 'wait' },
  waitingfortoolresults: { word: 'Waiting for you', icon: 'hand', tone: 'wait' },
  completed: { word: 'Completed', icon: 'check', tone: 'good' },
  success: { word: 'Done', icon: 'check', tone: 'good' },
  failed: { word: 'Failed', icon: 'alert', tone: 'bad' },
  error: { word: 'Failed', icon: 'alert', tone: 'bad' },
  timeout: { word: 'Timed out', icon: 'alert', tone: 'bad' },
  cancelled: { word: 'Cancelled', icon: 'slash', tone: 'quiet' },
  skipped: { word: 'Skipped', icon: 'slash', tone: 'quiet' },
  stalled: { word: 'Stalled', icon: 'alert', tone: 'bad' },
  started: { word: 'New', icon: 'dot', tone: 'quiet' },
  idle: { word: 'Idle', icon: 'dot', tone: 'quiet' },
  draft: { word: 'Draft', icon: 'edit', tone: 'quiet' },
  planned: { word: 'Planned', icon: 'schedule', tone: 'quiet' },
  enabled: { word: 'Active', icon: 'check', tone: 'good' },
  paused: { word: 'Paused', icon: 'pause', tone: 'quiet' },
  disabled: { word: 'Disabled', icon: 'pause', tone: 'quiet' },
  archived: { word: 'Archived', icon: 'archive', tone: 'quiet' },
  default: { word: 'Default', icon: 'check', tone: 'brand' },
  changed: { word: 'Changed', icon: 'alert', tone: 'wait' },
}

type Props = {
  status: string
  word?: string
  tone?: Tone
  icon?: string /** Shows the word as a title only. */
  isShort?: boolean
}

/** Status as an icon and a word. An unknown status is shown as it is. */
export function Badge({ status, isShort = false, ...own }: Props): VNode {
  const { word, icon, tone } = { ...(LOOKS[status] ?? { word: status, icon: 'dot', tone: 'quiet' }), ...own }
  if (isShort)
    return html`<span class=${`badge short ${tone}`} title=${word}><${Icon} name=${icon} /><span class="unseen">${word}</span></span>`
  return html`<span class=${`badge ${tone}`}><${Icon} name=${icon} />${word}</span>`
}

/** Status of a thing that people switch on and off. */
export const StatusBadge = ({ status }: { status: string }): VNode =>
  html`<${Badge} status=${status === 'active' ? 'enabled' : status} />`
