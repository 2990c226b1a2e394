import type { Agent, LlmModel, Session } from 'agent-session-client'
import { CopyId } from '../../parts/copy.ts'
import { costOf } from '../../parts/cost.ts'
import { confirmed } from '../../parts/dialog.ts'
import { Menu } from '../../parts/menu.ts'
import { plain } from '../../parts/plain.ts'
import { Time } from '../../parts/time.ts'
import { sessionSteps, UseFromCode } from '../../parts/use-from-code.ts'
import { go, link } from '../../router.ts'
import { api } from '../../service.ts'
import { type ComponentChildren, html, type VNode } from '../../ui.ts'
import { placeOf, shownFilter } from '../sessions/session-list.ts'
import { ApprovedTools } from './approved-tools.ts'
import { openFork } from './fork.ts'
import { Forks } from './forks.ts'
import { sessionItems } from './session-menu.ts'

type Known = { session: Session; agent: Agent | undefined; model: LlmModel | undefined }

/** Facts below the title of a session. */
export function factsOf({ session, agent, model }: Known): ComponentChildren[] {
  const { id, agent_version, usage, cost_usd, created_at, tags, status } = session
  const tokens = usage && usage.input_tokens + usage.output_tokens
  return [
    agent &&
      html`<span>Agent <a class="clipped" href=${link('agents', agent.id)} dir="auto" title=${plain(agent.name)}>${agent.name}</a>${agent_version ? `, version ${agent_version}` : ''}</span>`,
    model &&
      html`<span>Model <span class="clipped" dir="auto" title=${plain(model.model_id)}>${model.display_name}</span></span>`,
    status !== 'started' && html`<span>Cost ${costOf(cost_usd)}</span>`,
    tokens
      ? html`<span title=${`${usage?.input_tokens.toLocaleString()} in, ${usage?.output_tokens.toLocaleString()} out`}>Tokens ${tokens.toLocaleString()}</span>`
      : undefined,
    html`<span>Started <${Time} at=${created_at} /></span>`,
    tags.length > 0 &&
      html`<span class="tags">${tags.map((tag) => html`<a key=${tag} class="tag" dir="auto" href=${placeOf({ search: '', status: '', agent: '', tag })}>${tag}</a>`)}</span>`,
    html`<${CopyId} id=${id} />`,
    html`<${Forks} key=${id} session=${session} />`,
  ]
}

const SUMMARISE = {
  title: 'Summarise the conversation?',
  text: 'The model then reads the summary in place of everything said so far, which saves tokens. You still see all messages.',
  action: 'Summarise',
}

/** Actions on a session. */
export function HeadActions({ session, reload }: { session: Session; reload(): void }): VNode {
  const session_id = session.id
  const summarise = async () => {
    if (!(await confirmed(SUMMARISE))) return
    await api.sessions.compact({ session_id, wait: 0 })
    if (location.hash !== link('sessions', session_id)) go(link('sessions', session_id))
  }
  const others = [
    { label: 'Fork', icon: 'fork', run: () => openFork(session_id, {}) },
    { label: 'Summarise', icon: 'archive', run: summarise },
  ]
  const onDeleted = () => go(placeOf(shownFilter.value), { replace: true })
  return html`<${ApprovedTools} session=${session} reload=${reload} /><${UseFromCode} steps=${sessionSteps(session_id)} />
    <${Menu} label="Actions for this session" items=${sessionItems(session, { onChanged: reload, onDeleted }, others)} />`
}
