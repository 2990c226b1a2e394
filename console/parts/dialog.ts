import { organization } from '../service.ts'
import { type ComponentChildren, effect, html, signal, useEffect, useRef, useState, type VNode } from '../ui.ts'
import { Icon } from './icon.ts'

type Asked = {
  title: string
  /** Further sentence. */
  text?: string
  /** Label of the button that agrees. */
  action: string
  isDangerous?: boolean
  /** Label of an entry, whose text is the answer. */
  label?: string
  value?: string
  answer(text: string | undefined): void
}

const asked = signal<Asked | undefined>(undefined)
// A question about another organization's things is withdrawn.
effect(() => {
  if (organization.value !== '') asked.peek()?.answer(undefined)
})

const ask = (question: Omit<Asked, 'answer'>): Promise<string | undefined> =>
  new Promise((resolve) => {
    asked.value?.answer(undefined)
    const answer = (text: string | undefined) => {
      asked.value = undefined
      resolve(text)
    }
    asked.value = { ...question, answer }
  })

type Question = Pick<Asked, 'title' | 'text' | 'action' | 'isDangerous'>

/** Asks whether to go on. */
export const confirmed = async (question: Question): Promise<boolean> => (await ask(question)) !== undefined
/** Asks for a text. Returns undefined if the user gives none. */
export const askText = (question: Question & { label: string; value?: string }): Promise<string | undefined> =>
  ask(question)

/** Place of the questions, once in the page. */
export const Questions = (): VNode | null =>
  asked.value === undefined ? null : html`<${QuestionBox} key=${asked.value.title} ...${asked.value} />`

function QuestionBox({ title, text, action, isDangerous, label, value = '', answer }: Asked): VNode {
  const [entered, setEntered] = useState(value)
  const submit = (event: Event) => {
    event.preventDefault()
    answer(entered)
  }
  return html`<${Dialog} title=${title} onClose=${() => answer(undefined)}>
    <form onSubmit=${submit}>
      ${text && html`<p dir="auto">${text}</p>`}
      ${
        label &&
        html`<div class="field"><label>${label}
          <input autofocus value=${entered} dir="auto" autocomplete="off" onInput=${(event: Event) => setEntered((event.target as HTMLInputElement).value)} /></label></div>`
      }
      <div class="actions end">
        <button type="button" autofocus=${label === undefined} onClick=${() => answer(undefined)}>Cancel</button>
        <button class=${isDangerous ? 'primary danger' : 'primary'}>${action}</button>
      </div>
    </form>
  <//>`
}

type DialogProps = { title: string; className?: string; onClose(): void; children?: ComponentChildren }

/** Modal box. Escape, its button and a click beside it close it; the focus then returns to where it was. */
export function Dialog({ title, className = '', onClose, children }: DialogProps): VNode {
  const box = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null
    box.current?.showModal()
    return () => before?.isConnected && before.focus()
  }, [])
  const press = (event: MouseEvent) => {
    if (event.target === box.current) onClose()
  }
  return html`<dialog ref=${box} class=${className} aria-label=${title} onCancel=${onClose} onMouseDown=${press}>
    <div class="dialog-head"><h2 dir="auto">${title}</h2>
      <button type="button" class="ghost" aria-label="Close" onClick=${onClose}><${Icon} name="cross" /></button></div>
    ${children}
  </dialog>`
}
