import type { Agent, CreateAgentRequest, LlmModelWithProvider } from 'agent-session-client'
import { Icon } from '../../parts/icon.ts'
import { ActionButton, Problem } from '../../parts/page.ts'
import { DRAFT } from '../../parts/session-title.ts'
import { link } from '../../router.ts'
import { api } from '../../service.ts'
import { html, type RefObject, useEffect, useRef, useState, type VNode } from '../../ui.ts'
import { useDecidingKeys } from '../inbox-keys.ts'
import { type Live, openSession } from '../session/live.ts'
import { Turn } from '../session/turn-item.ts'

const TITLE_CHARACTERS = 100

type Tried = { sessionId: string; live: Live; version: string; isKept: boolean }

type Props = {
  agent: Partial<Agent>
  models: LlmModelWithProvider[]
  /** Changes with the settings. */
  version: string
  /** Returns the settings. Throws for JSON that cannot be read. */
  read(): CreateAgentRequest
}

/** Chat that runs the settings before they are saved. After a change it starts over with the next message. */
export function TryIt({ agent, models, version, read }: Props): VNode {
  const [tried, setTried] = useState<Tried | undefined>(undefined)
  const latest = useRef<Tried | undefined>(undefined)
  const use = (next: Tried | undefined) => {
    latest.current = next
    setTried(next)
  }
  const isLeft = useRef(false)
  useEffect(
    () => () => {
      isLeft.current = true
      drop(latest.current)
    },
    [],
  )
  const start = async (): Promise<Tried> => {
    const { name, system_prompt, default_model_id, capabilities, tools } = read()
    const { id } = await api.sessions.create({
      agent_id: agent.id,
      draft_prompt: system_prompt,
      model_id: default_model_id ?? defaultOf(models),
      capabilities,
      tools,
      title: `Try: ${name.slice(0, TITLE_CHARACTERS).toWellFormed()}`,
      tags: [DRAFT],
    })
    const { draft_prompt } = await api.sessions.get({ session_id: id })
    if (draft_prompt !== system_prompt) {
      // A process of the release before has made it, which knows no drafts.
      await api.sessions.delete({ session_id: id }).catch(() => {})
      throw new Error('The service is being updated, and these settings cannot be tried yet. Try again in a minute.')
    }
    drop(latest.current)
    const started = { sessionId: id, live: openSession(id), version, isKept: false }
    if (isLeft.current) drop(started)
    return started
  }
  const send = async (text: string) => {
    const isSame = tried !== undefined && tried.version === version && tried.live.state.value !== 'deleted'
    const current = isSame ? tried : await start()
    if (isLeft.current) return
    if (!isSame) use(current)
    await api.messages.create({ session_id: current.sessionId, message: { content: [{ type: 'text', text }] } })
  }
  const keep = async () => {
    const { current } = latest
    if (current === undefined) return
    // Before the answer, because leaving deletes what is not kept.
    const kept = { ...current, isKept: true }
    latest.current = kept
    try {
      await api.sessions.update({ session_id: current.sessionId, tags: [] })
      if (latest.current === kept) setTried(kept)
    } catch (error) {
      if (latest.current === kept) latest.current = current
      throw error
    }
  }
  const startOver = async () => {
    drop(latest.current)
    use(undefined)
  }
  const pane = useRef<HTMLDivElement>(null)
  return html`<section class="try-it" aria-labelledby="try-it">
    <div class="try-head"><h2 id="try-it">Try it</h2>
      ${
        tried &&
        html`<div class="actions">
          ${tried.isKept ? html`<a class="button" href=${link('sessions', tried.sessionId)}>Open the session</a>` : html`<${ActionButton} run=${keep}>Keep as a session<//>`}
          <${ActionButton} icon="again" run=${startOver}>Start over<//></div>`
      }</div>
    <div class="try-chat" ref=${pane} tabindex="0" role="group" aria-label="Tried conversation">
      ${
        tried
          ? html`<${Conversation} key=${tried.sessionId} sessionId=${tried.sessionId} live=${tried.live} pane=${pane} />`
          : html`<p class="quiet">Send a message to try these settings before you save them.</p>`
      }
    </div>
    ${tried && tried.version !== version && html`<p class="try-note" role="status"><${Icon} name="info" />New version: starts over with the next message.</p>`}
    <${Message} onSend=${send} />
  </section>`
}

/** An agent without a model of its own uses the default, and a session without one the saved model of its agent. */
const defaultOf = (models: LlmModelWithProvider[]): string | undefined =>
  models.find(({ is_default }) => is_default)?.id

/** Deletes a session that only tried something. A closed tab leaves it behind, with its tag. */
function drop(tried: Tried | undefined): void {
  if (tried && !tried.isKept) api.sessions.delete({ session_id: tried.sessionId }).catch(() => {})
}

type ConversationProps = { sessionId: string; live: Live; pane: RefObject<HTMLElement | null> }

function Conversation({ sessionId, live, pane }: ConversationProps): VNode {
  const turns = useRef<HTMLDivElement>(null)
  useDecidingKeys(turns, live.shown.value.conversation.turns)
  useEffect(live.start, [live])
  useEffect(() => (turns.current && pane.current ? keepEnd(turns.current, pane.current) : undefined), [])
  return html`<div class="chat" ref=${turns} role="log" aria-label="Conversation">${live.shown.value.conversation.turns.map(
    (turn) => html`<${Turn} key=${turn.id} sessionId=${sessionId} turn=${turn} version=${turn.version} />`,
  )}</div>
  <${Problem} error=${live.error.value} />
  ${live.state.value === 'deleted' && html`<p class="problem" role="alert">This session was deleted.</p>`}`
}

/** Distance from the end within which the reader counts as being there. */
const END_PX = 80

/** Keeps the end of a growing text in view, unless the reader has scrolled up. */
function keepEnd(content: HTMLElement, pane: HTMLElement): () => void {
  let isAtEnd = true
  const look = () => {
    isAtEnd = pane.scrollHeight - pane.clientHeight - pane.scrollTop < END_PX
  }
  const growth = new ResizeObserver(() => {
    if (isAtEnd) pane.scrollTop = pane.scrollHeight
  })
  growth.observe(content)
  pane.addEventListener('scroll', look, { passive: true })
  return () => {
    growth.disconnect()
    pane.removeEventListener('scroll', look)
  }
}

function Message({ onSend }: { onSend(text: string): Promise<void> }): VNode {
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>(undefined)
  const [isBusy, setBusy] = useState(false)
  const isSending = useRef(false)
  const send = async () => {
    if (isSending.current || text.trim() === '') return
    isSending.current = true
    setBusy(true)
    setError(undefined)
    try {
      await onSend(text)
      setText('')
    } catch (problem) {
      setError(problem)
    }
    isSending.current = false
    setBusy(false)
  }
  const press = (event: KeyboardEvent) => {
    // Enter also confirms a character in an input method.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    void send()
  }
  return html`<${Problem} error=${error} />
    <div class="try-message">
      <textarea rows="2" dir="auto" aria-label="Message to try" placeholder="Message" value=${text} onKeyDown=${press}
        onInput=${(event: Event) => setText((event.target as HTMLTextAreaElement).value)}></textarea>
      <button type="button" class="primary" aria-disabled=${isBusy} onClick=${send}><${Icon} name="send" />Send</button>
    </div>`
}
