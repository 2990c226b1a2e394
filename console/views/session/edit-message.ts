import type { InputContentPart, Message } from 'agent-session-client'
import { useFocusFallback } from '../../parts/focus.ts'
import { Problem } from '../../parts/page.ts'
import { Pictures } from '../../parts/pictures.ts'
import { html, useEffect, useRef, useState, type VNode } from '../../ui.ts'
import { useUnsaved } from '../../unsaved.ts'
import { textOf } from './conversation.ts'
import { newKey, openFork } from './fork.ts'

type Props = { sessionId: string; turnId: string; message: Message; onClose(): void }

/** Message of a turn, to be changed. A fork runs it, so that this conversation stays. */
export function EditMessage({ sessionId, turnId, message, onClose }: Props): VNode {
  const before = textOf(message.content)
  const [text, setText] = useState(before)
  const [state, setState] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false })
  const setUnsaved = useUnsaved()
  const box = useRef<HTMLTextAreaElement>(null)
  const place = useFocusFallback((form) => form.closest('.turn')?.querySelector<HTMLElement>('.outcome button'))
  const sent = useRef({ text: before, key: newKey() })
  useEffect(() => {
    const { current } = box
    current?.focus()
    current?.setSelectionRange(before.length, before.length)
  }, [])
  const change = (event: Event) => {
    const { value } = event.target as HTMLTextAreaElement
    setText(value)
    setUnsaved(value !== before)
  }
  const run = async () => {
    // Other parts than the text, such as images, stay.
    const others = message.content.filter(({ type }) => type === 'image' || type === 'image_file')
    const content = [...(text.trim() === '' ? [] : [{ type: 'text', text }]), ...others] as InputContentPart[]
    if (content.length === 0 || state.isBusy) return
    setState({ isBusy: true })
    if (sent.current.text !== text) sent.current = { text, key: newKey() }
    try {
      await openFork(sessionId, { at: turnId, message: { content } }, sent.current.key)
    } catch (error) {
      setState({ isBusy: false, error })
    }
  }
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onClose()
    // Enter also confirms a character in an input method.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    event.preventDefault()
    void run()
  }
  const submit = (event: Event) => {
    event.preventDefault()
    void run()
  }
  return html`<form class="edit-message" ref=${place} aria-label="Edit and run again" onSubmit=${submit}>
    <textarea ref=${box} rows=${Math.min(12, Math.max(2, before.split('\n').length + 1))} dir="auto" aria-label="Edited message" value=${text} onInput=${change} onKeyDown=${press}></textarea>
    <${Pictures} content=${message.content} />
    <${Problem} error=${state.error} />
    <div class="actions"><button class="primary" aria-disabled=${state.isBusy}>Run again</button><button type="button" onClick=${onClose}>Cancel</button>
      <small>Runs in a fork. This conversation stays as it is.</small></div>
  </form>`
}
