import type { Client, InputContentPart } from 'agent-session-client'
import { createAttachments } from './attachments.ts'
import { button, h } from './dom.ts'

export type Composer = {
  element: HTMLElement
  focus(): void
  setPlaceholder(text: string): void
  setBusy(isBusy: boolean): void
}

type Options = {
  client(): Client
  send(content: InputContentPart[]): void
  stop(): void
}

/** Box for the next message. Enter sends, Shift+Enter begins a line, Escape stops the turn that runs. */
export function createComposer({ client, send, stop }: Options): Composer {
  const input = h('textarea', { id: 'message', part: 'input', rows: 1, dir: 'auto', maxlength: 200_000 })
  const focus = () => input.focus()
  const attachments = createAttachments(client, focus)
  const files = h('input', {
    type: 'file',
    accept: 'image/png,image/jpeg,image/gif,image/webp',
    multiple: true,
    hidden: true,
  })
  const stopNow = () => {
    stop()
    focus()
  }
  const stopButton = button('stop', 'Stop', stopNow, { hidden: true })
  const submit = (event: Event) => {
    event.preventDefault()
    const text = input.value.trim()
    const images = attachments.take()
    if (images === undefined || (text === '' && images.length === 0)) return
    input.value = ''
    send([...(text === '' ? [] : [{ type: 'text' as const, text }]), ...images])
    focus()
  }
  files.addEventListener('change', () => {
    attachments.add(files.files ?? [])
    files.value = ''
    focus()
  })
  input.addEventListener('paste', (event) => {
    const { files: pasted, types } = event.clipboardData ?? {}
    // Some programs add an image of the text that was copied.
    if (!pasted?.length || types?.includes('text/plain')) return
    event.preventDefault()
    attachments.add(pasted)
  })
  input.addEventListener('keydown', (event) => {
    // Enter and Escape also end the composition of a character.
    if (event.isComposing) return
    if (event.key === 'Enter' && !event.shiftKey) submit(event)
    if (event.key === 'Escape' && !stopButton.hidden) {
      event.preventDefault()
      stop()
    }
  })
  const element = h(
    'form',
    { part: 'composer', submit },
    attachments.element,
    h('label', { for: 'message', class: 'unseen' }, 'Message'),
    input,
    h(
      'div',
      { class: 'row' },
      files,
      button('attach', 'Add images', () => files.click()),
      h('span', { class: 'space' }),
      stopButton,
      h('button', { part: 'button send primary' }, 'Send'),
    ),
  )
  return {
    element,
    focus,
    setPlaceholder: (text) => {
      input.placeholder = text
    },
    setBusy: (isBusy) => {
      const hadFocus = (input.getRootNode() as ShadowRoot).activeElement === stopButton
      stopButton.hidden = !isBusy
      if (hadFocus && !isBusy) focus()
    },
  }
}
