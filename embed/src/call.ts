import type { ContentPart } from 'agent-session-client'
import { jsonBox } from './ask.ts'
import { h } from './dom.ts'
import type { Pictures } from './pictures.ts'
import { plain } from './plain.ts'

/** Name of the calls by which a tool of the service asks its user. */
export const QUESTION = 'mcp_elicitation'

export type Outcome = { status: string; result: ContentPart[]; error: string | undefined }

/** A tool call: its name and status, and what it was given and has returned. */
export type CallView = {
  element: HTMLElement
  setName(displayName: string): void
  setArguments(value: Record<string, unknown>): void
  setStatus(status: string): void
  finish(outcome: Outcome): void
  /** Shows a question below the call, in place of the one before. */
  show(asked: HTMLElement | undefined): void
  isOver(): boolean
}

const STATUS: Record<string, string> = {
  planned: 'waiting',
  running: 'running…',
  success: 'done',
  error: 'failed',
  timeout: 'timed out',
}

export function createCall(name: string, pictures: Pictures): CallView {
  const title = h('code', {}, name === QUESTION ? 'Question' : plain(name))
  const state = h('span', { class: 'quiet', part: 'tool-status' }, STATUS.planned)
  const given = h('div')
  const returned = h('div')
  const place = h('div')
  let isOver = false
  return {
    element: h('div', {}, h('details', { part: 'tool' }, h('summary', {}, title, ' ', state), given, returned), place),
    setName: (displayName) => {
      if (name !== QUESTION) title.textContent = plain(displayName)
    },
    setArguments: (value) => {
      const shown = name === QUESTION && 'message' in value ? value.message : value
      given.replaceChildren(h('p', { class: 'quiet' }, 'Arguments'), jsonBox(shown, `Arguments of ${plain(name)}`))
    },
    setStatus: (status) => {
      state.textContent = STATUS[status] ?? plain(status)
    },
    finish: ({ status, result, error }) => {
      isOver = true
      state.textContent = STATUS[status] ?? plain(status)
      const text = result.map((part) => (part.type === 'text' ? part.text : '')).join('')
      returned.replaceChildren(
        ...(text === ''
          ? []
          : [h('p', { class: 'quiet' }, 'Result'), jsonBox(readable(text), `Result of ${plain(name)}`)]),
        ...(error ? [h('p', { class: 'problem', dir: 'auto' }, plain(error))] : []),
      )
      // Images are for the user, too, so they are seen without opening the details.
      place.replaceChildren(...pictures.show(result))
    },
    show: (asked) => place.replaceChildren(...(asked ? [asked] : [])),
    isOver: () => isOver,
  }
}

/** Returns a text unchanged, and JSON so that people can read it. */
function readable(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
