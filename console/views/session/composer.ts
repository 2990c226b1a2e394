import type { ImageUploadResponse, InputContentPart } from 'agent-session-client'
import { confirmed } from '../../parts/dialog.ts'
import { Problem } from '../../parts/page.ts'
import { api } from '../../service.ts'
import { type ComponentChildren, html, type Signal, signal, useEffect, useRef, useState, type VNode } from '../../ui.ts'
import { keepText, keptText } from '../../unsaved.ts'
import { newKey } from './fork.ts'

/** What a message does to a running answer: wait for its end, join it, or stop it. */
type OnBusy = 'enqueue' | 'steer' | 'interrupt'

/** Unsent message. Its text is kept until the tab is closed, its images while the session is shown. */
export type Draft = {
  text: Signal<string>
  images: Signal<ImageUploadResponse[]>
  onBusy: Signal<OnBusy>
  /** Idempotency-Key of all attempts to send the message. */
  key: string | undefined
}

export const createDraft = (sessionId: string): Draft => ({
  text: signal(keptText(sessionId)),
  images: signal([]),
  onBusy: signal('enqueue'),
  key: undefined,
})

type Props = {
  sessionId: string
  draft: Draft
  /** Whether a turn is unfinished. */
  isBusy: boolean
  /** Whether a turn waits for a person. */
  isWaiting: boolean
  /** Number of queued turns. */
  queued: number
  /** Whether the box takes the focus: in a session without messages. */
  isFirst: boolean
  onSent(): void
  children?: ComponentChildren
}

const CANCELS = {
  title: 'Send a new message?',
  text: 'The turn above waits for your answer. A new message cancels it.',
  action: 'Cancel the turn and send',
}

/** Box for the next message. Enter sends it, Shift and Enter start a new line. */
export function Composer({ sessionId, draft, isBusy, isWaiting, queued, isFirst, onSent, children }: Props): VNode {
  const [state, setState] = useState<{ isSending: boolean; error?: unknown; result?: string }>({ isSending: false })
  const [text, images, onBusy] = [draft.text.value, draft.images.value, draft.onBusy.value]
  const session_id = sessionId

  const isSending = useRef(false)
  const box = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (isFirst) box.current?.focus()
  }, [isFirst])
  /** Runs tasks one after the other: an image added while a message is being sent belongs to the next message. */
  const queue = useRef(Promise.resolve())
  const work = (run: () => Promise<unknown>): Promise<void> => {
    queue.current = queue.current.then(async () => {
      setState({ isSending: true })
      await run().then(
        (result) => setState({ isSending: false, result: typeof result === 'string' ? result : '' }),
        (error: unknown) => setState({ isSending: false, error }),
      )
    })
    return queue.current
  }
  const send = () =>
    work(async () => {
      // Read now: an image may have been uploaded since Enter was pressed.
      const [text, images, onBusy] = [draft.text.peek(), draft.images.peek(), draft.onBusy.peek()]
      const content: InputContentPart[] = [
        ...(text.trim() === '' ? [] : [{ type: 'text' as const, text }]),
        ...images.map(({ id, filename }) => ({ type: 'image_file' as const, image_id: id, filename })),
      ]
      if (content.length === 0) return
      draft.key ??= newKey()
      const headers = { 'Idempotency-Key': draft.key }
      // Posting ends the waiting turn, unless the message joins it.
      const on_busy: OnBusy = isWaiting && onBusy === 'interrupt' ? 'enqueue' : onBusy
      const body = { message: { content }, on_busy }
      const message = await api.messages.create({ session_id, ...body }, { headers })
      draft.key = undefined
      draft.onBusy.value = 'enqueue'
      // Text entered meanwhile belongs to the next message.
      if (draft.text.value === text) draft.text.value = ''
      keepText(sessionId, draft.text.value)
      draft.images.value = draft.images.value.filter((image) => !images.includes(image))
      onSent()
      if (on_busy === 'interrupt' && queued > 0)
        return `Stopped. ${messages(queued)} ${queued === 1 ? 'was' : 'were'} dropped.`
      if (on_busy === 'steer' && isBusy && 'turn_id' in message && !message.turn_id)
        return 'The message could not join the running answer, so it is sent after it.'
    })
  /** Changes the draft, which becomes another message with a new key. */
  const change = (values: { text?: string; images?: ImageUploadResponse[]; onBusy?: OnBusy }) => {
    draft.key = undefined
    if (state.error !== undefined || state.result) setState({ isSending: false })
    if (values.text !== undefined) {
      draft.text.value = values.text
      keepText(sessionId, values.text)
    }
    if (values.images) draft.images.value = values.images
    if (values.onBusy) draft.onBusy.value = values.onBusy
  }
  const attach = (files: Iterable<File>) =>
    work(async () => {
      for (const file of files) {
        const image = await api.images.upload({ file, session_id })
        change({ images: [...draft.images.value, image] })
      }
    })

  const submit = async (event: Event) => {
    event.preventDefault()
    // Enter may be pressed again before the button is disabled.
    if (isSending.current) return
    isSending.current = true
    const cancels = isWaiting && onBusy !== 'steer' && (text.trim() !== '' || images.length > 0 || state.isSending)
    if (!cancels || (await confirmed(CANCELS))) await send()
    isSending.current = false
  }
  const press = (event: KeyboardEvent) => {
    // The keys of the page work again.
    if (event.key === 'Escape' && !event.isComposing) document.querySelector('h1')?.focus({ preventScroll: true })
    // Enter also confirms a character in an input method.
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) void submit(event)
  }
  const paste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])].filter(({ type }) => type.startsWith('image/'))
    if (files.length === 0) return
    event.preventDefault()
    void attach(files)
  }
  const choose = async (event: Event) => {
    const input = event.target as HTMLInputElement
    await attach([...(input.files ?? [])])
    input.value = ''
  }
  return html`<form class="composer" onSubmit=${submit}>
    ${children}
    <label class="unseen" for="message">Message</label>
    <textarea id="message" ref=${box} rows="2" dir="auto" placeholder="Message" value=${text}
      onInput=${(event: Event) => change({ text: (event.target as HTMLTextAreaElement).value })} onKeyDown=${press} onPaste=${paste}></textarea>
    ${
      images.length > 0 &&
      html`<ul class="images">${images.map(
        ({ id, filename }) => html`<li key=${id}>${filename} <button type="button" aria-label=${`Remove ${filename}`}
          onClick=${() => change({ images: images.filter((image) => image.id !== id) })}>×</button></li>`,
      )}</ul>`
    }
    <${Problem} error=${state.error} />
    <p class="quiet" role="status">${state.result}</p>
    <div class="actions">
      <button class="primary" aria-disabled=${state.isSending}>Send</button>
      ${isBusy && (!isWaiting || text !== '') && html`<${BusyChoice} value=${onBusy} isWaiting=${isWaiting} queued=${queued} choose=${(value: OnBusy) => change({ onBusy: value })} />`}
      <label class="button file">Add images
        <input class="unseen" type="file" multiple accept="image/png,image/jpeg,image/gif,image/webp" onChange=${choose} /></label>
    </div>
  </form>`
}

const messages = (queued: number): string => `${queued} queued ${queued === 1 ? 'message' : 'messages'}`

type ChoiceProps = { value: OnBusy; isWaiting: boolean; queued: number; choose(value: OnBusy): void }

/** Choice of what a message does to the running answer. */
function BusyChoice({ value, isWaiting, queued, choose }: ChoiceProps): VNode {
  const options: [OnBusy, string][] = isWaiting
    ? [
        ['enqueue', 'Cancel the waiting turn and send'],
        ['steer', 'Add to the waiting turn'],
      ]
    : [
        ['enqueue', 'Send after this answer'],
        ['steer', 'Add to the running answer'],
        ['interrupt', `Stop and send now${queued > 0 ? ` (drops ${messages(queued)})` : ''}`],
      ]
  return html`<label><span class="unseen">While an answer is running</span>
    <select onChange=${(event: Event) => choose((event.target as HTMLSelectElement).value as OnBusy)}>${options.map(
      ([option, label]) => html`<option key=${option} value=${option} selected=${option === value}>${label}</option>`,
    )}</select></label>`
}
