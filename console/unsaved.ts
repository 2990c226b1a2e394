import { useLayoutEffect, useRef } from './ui.ts'

const QUESTION = 'Leave without saving what you have entered?'
/** One object for each form in which something was entered. */
const forms = new Set<object>()

addEventListener('beforeunload', (event) => {
  if (forms.size > 0) event.preventDefault()
})

export const hasUnsaved = (): boolean => forms.size > 0

/** Reports whether what is shown may be left, and asks first if something entered would be lost. */
export function mayLeave(): boolean {
  const isAllowed = forms.size === 0 || confirm(QUESTION)
  if (isAllowed) forms.clear()
  return isAllowed
}

/** Returns what tells whether a view has something that would be lost. A view that is gone has nothing. */
export function useUnsaved(): (isUnsaved: boolean) => void {
  const form = useRef({ isShown: true }).current
  useLayoutEffect(
    () => () => {
      form.isShown = false
      forms.delete(form)
    },
    [],
  )
  return (isUnsaved) => {
    if (isUnsaved && form.isShown) forms.add(form)
    else forms.delete(form)
  }
}

const PREFIX = 'console.text.'

/** Returns a text that was kept under a name, until the tab is closed, or ''. */
export const keptText = (name: string): string => sessionStorage.getItem(PREFIX + name) ?? ''

/** Keeps a text, as far as there is room. */
export function keepText(name: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(PREFIX + name)
    else sessionStorage.setItem(PREFIX + name, text)
  } catch {
    // The browser keeps some megabytes only.
  }
}

export function forgetTexts(): void {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
}
