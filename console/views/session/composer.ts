import type { ImageUploadResponse, InputContentPart } from 'agent-session-client'
import { Problem } from '../../parts/page.ts'
import { api } from '../../service.ts'
import { html, useEffect, useRef, useState, type VNode } from '../../ui.ts'

type OnBusy = 'enqueue' | 'reject' | 'interrupt'

type Props = {
  sessionId: string
  /** Whether a turn is not over. */
  isBusy: boolean
  /** Whether nothing has been said yet: there is nothing to do but to begin. */
  isFirst: boolean
  onSent(): void
}

/** Box for the next message. Enter sends it, Shift and Enter begin a line. */
export function Composer({ sessionId, isBusy, isFirst, onSent }: Props): VNode {
  const [text, setText] = useState('')
  const [images, setImages] = useState<ImageUploadResponse[]>([])
  const [onBusy, setOnBusy] = useState<OnBusy>('enqueue')
  const [state, setState] = useState<{ isSending: boolean; error?: unknown }>({ isSending: false })
  /** The same for each attempt to send a message, so that it is sent once. */
  const key = useRef<string | undefined>(undefined)
  const session_id = sessionId

  const isWorking = useRef(false)
  const box = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    if (isFirst) box.current?.focus()
  }, [isFirst])
  const work = async (run: () => Promise<unknown>) => {
    // Enter may come again before the button is disabled.
    if (isWorking.current) return
    isWorking.current = true
    setState({ isSending: true })
    await run().then(
      () => setState({ isSending: false }),
      (error: unknown) => setState({ isSending: false, error }),
    )
    isWorking.current = false
  }
  const send = () =>
    work(async () => {
      const content: InputContentPart[] = [
        ...(text.trim() === '' ? [] : [{ type: 'text' as const, text }]),
        ...images.map(({ id, filename }) => ({ type: 'image_file' as const, image_id: id, filename })),
      ]
      if (content.length === 0) return
      key.current ??= newKey()
      const headers = { 'Idempotency-Key': key.current }
      await api.createMessage({ path: { session_id }, headers, body: { message: { content }, on_busy: onBusy } })
      change('')
      setImages([])
      onSent()
    })
  const change = (value: string) => {
    key.current = undefined
    setText(value)
  }
  const attach = (files: Iterable<File>) =>
    work(async () => {
      key.current = undefined
      for (const file of files) {
        const image = await api.uploadImage({ body: { file }, query: { session_id } })
        setImages((before) => [...before, image])
      }
    })

  const submit = (event: Event) => {
    event.preventDefault()
    void send()
  }
  const press = (event: KeyboardEvent) => {
    // Enter also ends the choice of a character that is composed.
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event)
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
    <label class="unseen" for="message">Message</label>
    <textarea id="message" ref=${box} rows="3" dir="auto" placeholder="Message" value=${text}
      onInput=${(event: Event) => change((event.target as HTMLTextAreaElement).value)} onKeyDown=${press} onPaste=${paste}></textarea>
    ${
      images.length > 0 &&
      html`<ul class="images">${images.map(
        ({ id, filename }) => html`<li key=${id}>${filename} <button type="button" aria-label=${`Remove ${filename}`}
          onClick=${() => setImages((before) => before.filter((image) => image.id !== id))}>×</button></li>`,
      )}</ul>`
    }
    <${Problem} error=${state.error} />
    <div class="actions">
      <button class="primary" disabled=${state.isSending}>Send</button>
      ${
        isBusy &&
        html`<label>If a turn is running${' '}
          <select onChange=${(event: Event) => setOnBusy((event.target as HTMLSelectElement).value as OnBusy)}>
            <option value="enqueue" selected=${onBusy === 'enqueue'}>queue the message</option>
            <option value="interrupt" selected=${onBusy === 'interrupt'}>interrupt it</option>
            <option value="reject" selected=${onBusy === 'reject'}>reject the message</option>
          </select></label>`
      }
      <label class="button file">Add images
        <input class="unseen" type="file" multiple accept="image/png,image/jpeg,image/gif,image/webp" onChange=${choose} /></label>
    </div>
  </form>`
}

/** `crypto.randomUUID` is missing on pages without TLS. */
const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')
