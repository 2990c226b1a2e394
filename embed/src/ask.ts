import type { RequestedCall } from 'agent-session-client'
import { button, cut, h } from './dom.ts'
import { safeHref } from './markdown-inline.ts'
import { plain } from './plain.ts'
import { createForm } from './question-form.ts'

/** Answer to a question of a tool, in the terms of MCP's elicitation. */
export type QuestionAnswer = { action: 'accept' | 'decline' | 'cancel'; content?: Record<string, unknown> }

/** Question to the user. Its answer never comes if somebody else answers first; then the element is removed. */
export type Asked<T> = { element: HTMLElement; answer: Promise<T> }

/** Time for which a new button cannot be pressed: the click may be meant for what was there before. */
const STILL_MS = 500

/** Asks whether the service may run a tool. */
export function askApproval({ name, arguments: given }: RequestedCall): Asked<boolean> {
  return ask('approval', `Approval of ${plain(name)}`, (answer) => [
    h('p', {}, 'May the agent run ', h('code', {}, plain(name)), '?'),
    jsonBox(given, `Arguments of ${plain(name)}`),
    h(
      'div',
      { class: 'row' },
      button('approve primary', 'Approve', () => answer(true)),
      button('deny', 'Deny', () => answer(false)),
    ),
  ])
}

/** Asks a question of a tool of the service. A form that this element cannot show can only be declined. */
export function askQuestion({ arguments: given }: RequestedCall): Asked<QuestionAnswer> {
  const { message, tool, url, requested_schema } = given
  const href = typeof url === 'string' ? safeHref(url) : undefined
  const form = typeof url === 'string' ? undefined : createForm(requested_schema)
  return ask('question', 'Question', (answer) => {
    const accept = (event: Event) => {
      event.preventDefault()
      answer({ action: 'accept', ...(form && { content: form.read() }) })
    }
    const canAccept = form !== undefined || href !== undefined
    return [
      h(
        'form',
        { submit: accept },
        typeof tool === 'string' && h('p', { class: 'quiet' }, 'Asked by ', h('code', {}, plain(tool))),
        h('p', { dir: 'auto' }, typeof message === 'string' && plain(message)),
        href !== undefined && h('p', {}, h('a', { href, target: '_blank', rel: 'noopener noreferrer' }, href)),
        ...(form?.elements ?? []),
        h(
          'div',
          { class: 'row' },
          canAccept && h('button', { part: 'button answer primary' }, href === undefined ? 'Answer' : 'Done'),
          button('decline', 'Decline', () => answer({ action: 'decline' })),
        ),
      ),
    ]
  })
}

function ask<T>(part: string, label: string, build: (answer: (value: T) => void) => HTMLElement[]): Asked<T> {
  const element = h('div', { role: 'group', 'aria-label': label, part, class: 'asked', inert: true })
  setTimeout(() => {
    element.inert = false
  }, STILL_MS)
  const answer = new Promise<T>((resolve) => element.append(...build(resolve)))
  return { element, answer }
}

/** Box that the keyboard can scroll. */
export const jsonBox = (value: unknown, label: string): HTMLElement =>
  h('pre', { tabindex: 0, role: 'group', 'aria-label': label, part: 'code' }, cut(plain(textOf(value))))

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))
