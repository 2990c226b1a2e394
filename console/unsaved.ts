import { useLayoutEffect, useRef } from './ui.ts'

const QUESTION = 'Leave without saving what you have entered?'
/** One object for each form with unsaved input. */
const forms = new Set<object>()

addEventListener('beforeunload', (event) => {
  if (forms.size > 0) event.preventDefault()
})

export const hasUnsaved = (): boolean => forms.size > 0

/** Reports whether the view may be left, and first asks about unsaved input. */
export function mayLeave(): boolean {
  const isAllowed = forms.size === 0 || confirm(QUESTION)
  if (isAllowed) forms.clear()
  return isAllowed
}

/** Returns a function that marks whether a view has unsaved input. A removed view has none. */
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

/** Returns the text kept under a name, or ''. Texts are kept until the tab is closed. */
export const keptText = (name: string): string => sessionStorage.getItem(PREFIX + name) ?? ''

/** Keeps a text, if there is room. */
export function keepText(name: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(PREFIX + name)
    else sessionStorage.setItem(PREFIX + name, text)
  } catch {
    // The browser stores only a few megabytes.
  }
}

export function forgetTexts(): void {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name)
}
