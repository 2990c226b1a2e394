import { type ComponentChildren, html, type VNode } from '../../ui.ts'
import { Icon } from '../icon.ts'
import { plain } from '../plain.ts'

/** Icons of tools by their names. The first match counts. */
const ICONS: [RegExp, string][] = [
  [/^ask_user$|elicitation/, 'user'],
  [/^ask_/, 'agent'],
  [/bash|shell|command|terminal/, 'terminal'],
  [/sql|database/, 'database'],
  [/director|folder/, 'folder'],
  [/file/, 'file'],
  [/schedule|time/, 'schedule'],
  [/fetch|url|http|web/, 'link'],
  [/search|find|grep/, 'search'],
  [/secret|kv_store/, 'key'],
  [/skill/, 'skill'],
]

type Props = { name: string; title: string }

/** Name of a tool as people read it, with the name that models use as its title. */
export const CallTitle = ({ name, title }: Props): VNode =>
  html`<${Icon} name=${ICONS.find(([names]) => names.test(name))?.[1] ?? 'tool'} /><span class="call-title" title=${plain(name)} dir="auto">${title}</span>`

/** Line of a call that opens the rest: the tool, and what it works on. */
export const CallSummary = ({ subject, ...props }: Props & { subject?: ComponentChildren }): VNode =>
  html`<${Icon} name="right" className="chevron" /><${CallTitle} ...${props} /><span class="quiet subject" dir="auto"><span>${subject}</span></span>`
