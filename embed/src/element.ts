import type { Client, ContentPart, Tool } from 'agent-session-client'
import { type Chat, type ChatView, openChat } from './chat.ts'
import { type Composer, createComposer } from './composer.ts'
import { connect, type TokenSource } from './connect.ts'
import { button, h } from './dom.ts'
import { type Memory, openMemory } from './memory.ts'
import { createPictures, type Pictures } from './pictures.ts'
import { plain } from './plain.ts'
import { stickToEnd } from './scroll.ts'
import { styles } from './style.ts'
import { createTurn } from './turn.ts'

/** Address of the service: this module is one of its files. */
const OWN_BASE = new URL('.', import.meta.url).href

/** Attributes after whose change the chat is opened anew. */
const OF_CHAT = ['agent', 'session', 'base-url']
const SHOWN = ['heading', 'placeholder']
/** Properties that a page may have set before this module was loaded. */
const PROPERTIES = ['token', 'tools'] as const

/** The element `<agent-chat>`: a chat with an agent. docs/faces/agent-chat.md describes it. */
export class AgentChat extends HTMLElement {
  static readonly observedAttributes = [...OF_CHAT, ...SHOWN]
  readonly #heading = h('h2', { part: 'heading' })
  readonly #newChat = button('new-chat', 'New chat', () => this.newChat(), { hidden: true })
  readonly #problem = h('div', { class: 'foot' })
  readonly #loaded = h('div', { class: 'turns' })
  readonly #begun = h('div', { class: 'turns' })
  readonly #turns = h('div', { class: 'turns' }, this.#loaded, this.#begun)
  readonly #log = h(
    'div',
    { role: 'log', 'aria-live': 'polite', 'aria-label': 'Conversation', tabindex: 0, part: 'log' },
    this.#turns,
    this.#problem,
  )
  readonly #composer: Composer
  readonly #scroll = stickToEnd(this.#log, this.#turns)
  readonly #tools: Record<string, Tool> = {}
  #token: TokenSource
  #opened: { client: Client; chat: Chat; pictures: Pictures; memory: Memory } | undefined
  #isNew = false

  constructor() {
    super()
    this.#composer = createComposer({
      client: () => this.#open().client,
      send: (content) => this.#send(content),
      stop: () => this.stop(),
    })
    const root = this.attachShadow({ mode: 'open' })
    root.adoptedStyleSheets = [styles]
    root.append(h('header', { part: 'header' }, this.#heading, this.#newChat), this.#log, this.#composer.element)
    this.#showTexts()
  }

  /** Tools of the page by their names: functions, or values of `defineTool`. */
  get tools(): Record<string, Tool> {
    return this.#tools
  }
  set tools(tools: Record<string, Tool>) {
    for (const name of Object.keys(this.#tools)) delete this.#tools[name]
    Object.assign(this.#tools, tools)
    this.#opened?.chat.addTools(tools)
  }

  /** Access token, or a function that returns it. It takes precedence over `token-url`. */
  get token(): TokenSource {
    return this.#token
  }
  set token(token: TokenSource) {
    const isFirst = this.#token === undefined
    this.#token = token
    // What was asked for without a token may have been refused.
    if (isFirst && token !== undefined) this.#openAnew()
  }

  /** Sends a message as if the user had entered it. */
  send(text: string): void {
    this.#send([{ type: 'text', text }])
  }

  /** Cancels the turn that runs. */
  stop(): void {
    this.#opened?.chat.stop()
  }

  /** Leaves the session, and begins another one with the next message. */
  newChat(): void {
    this.#opened?.memory.forget()
    this.#close()
    this.#isNew = true
    if (this.isConnected) this.#open()
    this.#composer.focus()
  }

  override focus(): void {
    this.#composer.focus()
  }

  connectedCallback(): void {
    for (const name of PROPERTIES) this.#takeOwn(name)
    // Later, so that a page can first set attributes and properties.
    queueMicrotask(() => this.isConnected && this.#open())
  }

  disconnectedCallback(): void {
    this.#close()
  }

  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    if (name === 'session') this.#isNew = false
    if (SHOWN.includes(name)) this.#showTexts()
    else if (before !== value) this.#openAnew()
  }

  /** Moves a property that was set before the element was defined behind its accessor. */
  #takeOwn(name: (typeof PROPERTIES)[number]): void {
    if (!Object.hasOwn(this, name)) return
    const value = this[name]
    delete (this as Partial<AgentChat>)[name]
    Object.assign(this, { [name]: value })
  }

  #showTexts(): void {
    this.#heading.textContent = this.getAttribute('heading') ?? ''
    this.#composer.setPlaceholder(this.getAttribute('placeholder') ?? 'Message')
  }

  #send(content: Parameters<Chat['send']>[0]): void {
    if (!this.isConnected) throw new Error('agent-chat: must be in a document before it can send')
    this.#open().chat.send(content)
    this.#scroll.goToEnd()
  }

  /** Opens the chat anew once all attributes of a change are set. */
  #openAnew(): void {
    if (this.#opened === undefined) return
    this.#close()
    queueMicrotask(() => this.isConnected && this.#open())
  }

  #open() {
    if (this.#opened !== undefined) return this.#opened
    const baseUrl = new URL(this.getAttribute('base-url') ?? OWN_BASE, document.baseURI).href.replace(/\/+$/, '')
    const agentId = this.getAttribute('agent') ?? undefined
    const client = connect({
      baseUrl,
      tokenUrl: () => this.getAttribute('token-url') ?? undefined,
      token: () => this.#token,
    })
    const pictures = createPictures(client)
    const memory = openMemory(`agent-chat ${baseUrl} ${agentId ?? ''}`)
    const sessionId = this.#isNew ? undefined : (this.getAttribute('session') ?? undefined)
    const chat = openChat({ client, memory, agentId, sessionId, tools: this.#tools, view: this.#viewOf(pictures) })
    this.#opened = { client, chat, pictures, memory }
    return this.#opened
  }

  #close(): void {
    this.#opened?.chat.close()
    this.#opened?.pictures.close()
    this.#opened = undefined
    this.#loaded.replaceChildren()
    this.#begun.replaceChildren()
    this.#problem.replaceChildren()
    this.#newChat.hidden = true
    this.#composer.setBusy(false)
  }

  #viewOf(pictures: Pictures): ChatView {
    return {
      addTurn: (content: ContentPart[], place) => {
        const turn = createTurn({ content, pictures, onFocusLost: () => this.#composer.focus() })
        const list = place === 'loaded' ? this.#loaded : this.#begun
        list.append(turn.element)
        this.#newChat.hidden = false
        return turn
      },
      setProblem: (sentence, tryAgain) => {
        const shown = sentence !== undefined && [
          h('p', { class: 'problem', role: 'alert', part: 'error', dir: 'auto' }, plain(sentence)),
          button('try-again', 'Try again', tryAgain),
        ]
        this.#newChat.hidden = sentence === undefined && this.#begun.childElementCount === 0
        this.#problem.replaceChildren(...(shown || []))
      },
      setBusy: (isBusy) => this.#composer.setBusy(isBusy),
      emit: (type, detail) => {
        this.dispatchEvent(new CustomEvent(`agent-chat:${type}`, { detail, bubbles: true, composed: true }))
      },
    }
  }
}
