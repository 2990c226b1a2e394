import type { Agent } from 'agent-session-client'
import { html, type VNode } from '../../ui.ts'
import type { Draft } from './composer.ts'

const MAX_STARTERS = 3

/** First messages that fit what an agent may use, by the refs of its capabilities. */
const STARTERS: [RegExp, string][] = [
  [/^session_file_system$|^virtual_bash$/, 'Write a short note into a file.'],
  [/^session_sql_database$|^sample_data$/, 'Make a small table, and sum it up.'],
  [/^web_fetch$|^research$/, 'Find out something on the web for me.'],
  [/^session_schedule$/, 'Remind me of something tomorrow at nine.'],
  [/^mcp:/, 'Which tools do you have, and for what?'],
]

/** Place of a conversation that has no messages yet: the purpose of the agent, and messages to begin with. */
export function Starters({ agent, draft }: { agent: Agent | undefined; draft: Draft }): VNode {
  const refs = agent?.capabilities.map(({ ref }) => ref) ?? []
  const fitting = STARTERS.filter(([pattern]) => refs.some((ref) => pattern.test(ref))).map(([, text]) => text)
  const starters = ['What can you do?', ...fitting].slice(0, MAX_STARTERS)
  const take = (text: string) => {
    // What was typed before stays.
    draft.text.value = [draft.text.value.trimEnd(), text].filter(Boolean).join('\n')
    draft.key = undefined
    document.getElementById('message')?.focus()
  }
  return html`<div class="middle starters">
    <p class="quiet">No messages yet.</p>
    ${agent?.description && html`<p class="quiet" dir="auto">${agent.description}</p>`}
    <div class="actions">${starters.map(
      (text) => html`<button type="button" key=${text} onClick=${() => take(text)}>${text}</button>`,
    )}</div>
  </div>`
}
