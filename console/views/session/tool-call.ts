import { Badge } from '../../parts/badge.ts'
import { CallBody, type CallBodyProps } from '../../parts/call/body.ts'
import { FilePath, isOfFiles } from '../../parts/call/file-path.ts'
import { ExitCode } from '../../parts/call/result.ts'
import { exitCodeOf } from '../../parts/call/results.ts'
import { CallSummary } from '../../parts/call/title.ts'
import { Fold } from '../../parts/fold.ts'
import { subjectOf } from '../../parts/subject.ts'
import { html, useRef, type VNode } from '../../ui.ts'
import { BUDGET, type Call, QUESTION, textOf } from './conversation.ts'
import { useFileBefore } from './file-before.ts'
import { WaitingCall } from './waiting-call.ts'

/** Question of a tool, once it has been answered. */
const questionOf = ({ status, arguments: given }: Call): Call['arguments'] =>
  status === 'waiting' || typeof given?.message !== 'string' ? undefined : { question: given.message }

/** Outcomes of a question by the action of its answer. */
const ACTIONS: Record<string, string> = { accept: 'Answered', decline: 'Declined', cancel: 'Dismissed' }

/** State of a call as an icon and a word. A command has failed if its exit code says so. */
function State({ call: { name, status, result } }: { call: Call }): VNode {
  if (status === 'running') return html`<${Badge} status="running" word="Running…" />`
  if (status !== 'success') return html`<${Badge} status=${status} />`
  const text = textOf(result)
  const code = exitCodeOf(text)
  if (code !== undefined && code !== 0) return html`<${ExitCode} code=${code} />`
  const action = name === QUESTION ? (/^\s*\{"action":\s*"(\w+)"/.exec(text)?.[1] ?? '') : ''
  return html`<${Badge} status="success" tone="quiet" word=${ACTIONS[action] ?? 'Done'} />`
}

/** Returns the work of a call in a few words. A file that it has read or written is a link. */
function subjectIn(sessionId: string, { name, status }: Call, given: Call['arguments']): VNode | string {
  const { path } = given ?? {}
  const isFile = status === 'success' && isOfFiles(name) && typeof path === 'string'
  return isFile ? html`<${FilePath} path=${path} sessionId=${sessionId} />` : subjectOf(given)
}

/**
 * Arguments and result of a call. While it asks, the changes of its file are shown. `of` is its session. A component of its
 * own, because preact does not redraw one with a state for a call that has changed within.
 */
function Body({ of, isAsking, ...props }: CallBodyProps & { of: string; isAsking: boolean }): VNode {
  const { name, given } = props
  const before = useFileBefore(of, { name, arguments: given }, isAsking)
  return html`<${CallBody} ...${props} before=${before} />`
}

/** Call of a tool in one line, and opened its arguments, its result, and the ways to answer while it waits. */
export function Tool({ sessionId, call }: { sessionId: string; call: Call }): VNode {
  const { name, title, status, kind, result, error } = call
  // A waiting question is shown with its form.
  const isForm = name === QUESTION || (status === 'waiting' && (name === BUDGET || kind === 'client_tool'))
  const given = isForm ? questionOf(call) : call.arguments
  const isActive = status === 'running' || status === 'waiting'
  const hasWaited = useRef(false)
  hasWaited.current ||= status === 'waiting'
  const files = status === 'success' && isOfFiles(name) ? sessionId : undefined
  const summary = html`<${CallSummary} name=${name} title=${title} subject=${subjectIn(sessionId, call, given)} /><${State} call=${call} />`
  const content = () =>
    html`<${Body} name=${name} given=${given} result=${result} error=${error} sessionId=${files} of=${sessionId} isAsking=${hasWaited.current && isActive} />`
  return html`<li class="call">
    <${Fold} isOpen=${isActive && !call.hasAsked} summary=${summary} content=${content} />
    ${hasWaited.current && isActive && html`<${WaitingCall} sessionId=${sessionId} call=${call} isOver=${status !== 'waiting'} />`}
  </li>`
}
