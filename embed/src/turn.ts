import type { AnswerPart, ContentPart, Message, RequestedCall } from 'agent-session-client'
import { type Asked, askApproval, askQuestion, type QuestionAnswer } from './ask.ts'
import { type CallView, createCall } from './call.ts'
import { button, cut, h } from './dom.ts'
import { createFormatted } from './formatted.ts'
import type { Pictures } from './pictures.ts'
import { plain } from './plain.ts'

/** A message of the user and everything that answers it. */
export type TurnView = {
  element: HTMLElement
  take(part: AnswerPart): void
  approve(call: RequestedCall): Promise<boolean>
  question(call: RequestedCall): Promise<QuestionAnswer>
  /** Shows what the turn is doing, with a button if it can be taken back. */
  setStatus(status: string, remove?: () => void): void
  /** Shows why there is no answer. */
  fail(sentence: string, tryAgain: (() => void) | undefined): void
  end(note?: string): void
  /** Forgets the answer, which is followed again from its start. */
  reset(): void
}

type Options = {
  content: ContentPart[]
  pictures: Pictures
  /** Called when an element with the focus goes away. */
  onFocusLost(): void
}

export function createTurn({ content, pictures, onFocusLost }: Options): TurnView {
  const answer = h('div', { class: 'answer' })
  const foot = h('div', { class: 'foot', part: 'status' })
  const element = h('div', { part: 'turn', class: 'turn' }, ...saidOf(content, pictures), answer, foot)
  /** Incomplete messages by their steps. */
  let steps = new Map<number, StepView>()
  let calls = new Map<string, CallView>()
  /** What the turn is doing, until it ends. */
  let current: { status: string; remove: (() => void) | undefined } | undefined
  const showStatus = () => {
    if (current === undefined) return
    const isWaiting = answer.querySelector('.asked') !== null
    // Busy, it is read out when it is complete, or waits for the user.
    element.ariaBusy = String(!isWaiting)
    const status = isWaiting ? 'Waiting for you.' : current.status
    if (foot.textContent?.startsWith(status)) return
    const way = current.remove && button('remove', 'Remove', current.remove)
    foot.replaceChildren(h('span', { class: 'quiet' }, status), ...(way ? [way] : []))
  }
  const keepFocus = (change: () => void) => {
    const root = element.getRootNode()
    const focused = root instanceof ShadowRoot && root.activeElement
    change()
    if (focused && !focused.isConnected) onFocusLost()
  }
  const stepAt = (step: number): StepView => {
    const view = steps.get(step) ?? createStep(answer, pictures)
    steps.set(step, view)
    return view
  }
  const addCall = (id: string, name: string): CallView => {
    const call = createCall(name, pictures)
    calls.set(id, call)
    answer.append(call.element)
    return call
  }
  const take = (part: AnswerPart) => {
    if (part.type === 'thinking') stepAt(part.step).think(part.text)
    else if (part.type === 'text') stepAt(part.step).write(part.text)
    else if (part.type === 'restarted') stepAt(part.step).restart()
    else if (part.type === 'message') {
      stepAt(part.step).complete(part.message)
      steps.delete(part.step)
      for (const one of part.message.content) {
        if (one.type === 'tool_call') addCall(one.id, one.name).setArguments(one.arguments)
      }
    } else if (part.type === 'tool') {
      const call = calls.get(part.id) ?? addCall(part.id, part.name)
      if (part.displayName) call.setName(part.displayName)
      if ('arguments' in part) call.setArguments(part.arguments)
      call.setStatus(part.status)
      if ('result' in part) call.finish(part)
    } else if (part.type === 'waiting') {
      for (const { id, name } of part.calls) (calls.get(id) ?? addCall(id, name)).setStatus('waits for another program')
    }
  }
  const put = <T>({ id, name, arguments: given }: RequestedCall, asked: Asked<T>): Promise<T> => {
    const call = calls.get(id) ?? addCall(id, name)
    call.setArguments(given)
    call.show(asked.element)
    showStatus()
    return asked.answer.then((value) => {
      keepFocus(() => call.show(undefined))
      showStatus()
      return value
    })
  }
  const close = (...shown: (HTMLElement | string)[]) =>
    keepFocus(() => {
      current = undefined
      element.ariaBusy = 'false'
      for (const call of calls.values()) if (!call.isOver()) call.show(undefined)
      // An incomplete text belongs to no message.
      for (const step of steps.values()) step.restart()
      foot.replaceChildren(...shown)
    })
  return {
    element,
    take: (part) => {
      keepFocus(() => take(part))
      showStatus()
    },
    approve: (call) => put(call, askApproval(call)),
    question: (call) => put(call, askQuestion(call)),
    setStatus: (status, remove) => {
      current = { status, remove }
      showStatus()
    },
    fail: (sentence, tryAgain) => {
      const again = () => {
        keepFocus(() => way?.remove())
        tryAgain?.()
      }
      const way = tryAgain && button('try-again', 'Try again', again)
      close(
        h('p', { class: 'problem', role: 'alert', part: 'error', dir: 'auto' }, plain(sentence)),
        ...(way ? [way] : []),
      )
    },
    end: (note) => close(...(note ? [h('span', { class: 'quiet' }, note)] : [])),
    reset: () => {
      steps = new Map()
      calls = new Map()
      answer.replaceChildren()
    },
  }
}

function saidOf(content: ContentPart[], pictures: Pictures): HTMLElement[] {
  const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const shown = [...(text === '' ? [] : [h('p', { dir: 'auto' }, cut(plain(text)))]), ...pictures.show(content)]
  return shown.length === 0 ? [] : [h('div', { part: 'user message', class: 'said' }, ...shown)]
}

type StepView = {
  think(text: string): void
  write(text: string): void
  restart(): void
  complete(message: Message): void
}

/** One message of the agent, with its thinking. */
function createStep(answer: HTMLElement, pictures: Pictures): StepView {
  const thought = h('p', { dir: 'auto' })
  const thinking = h('details', { part: 'thinking' }, h('summary', {}, 'Thinking'), thought)
  const body = h('div', { part: 'agent message', class: 'formatted' })
  const write = createFormatted(body)
  answer.append(body)
  const think = (text: string) => {
    thought.textContent = cut(plain(text))
    if (text === '') thinking.remove()
    else if (!thinking.isConnected) body.before(thinking)
  }
  return {
    think,
    write,
    restart: () => {
      think('')
      write('')
    },
    complete: ({ content, thinking: whole, metadata }) => {
      if (whole) think(whole)
      write(content.map((part) => (part.type === 'text' ? part.text : '')).join(''))
      body.append(...pictures.show(content))
      if (metadata?.finish_reason === 'length') {
        body.append(h('p', { class: 'quiet' }, 'Cut off: the answer reached the model’s limit of length.'))
      }
    },
  }
}
