import type { ContentPart } from 'agent-session-client'
import { html, useState, type VNode } from '../../ui.ts'
import { LongText } from '../long-text.ts'
import { CallArguments } from './arguments.ts'
import { CallResult } from './result.ts'
import { parsed } from './results.ts'
import type { Given } from './shapes.ts'

export type CallBodyProps = {
  name: string
  given: Given | undefined
  /** Content of the file that the call would replace. */
  before?: string | undefined
  result: ContentPart[]
  error: string | undefined
  /** Session whose files the call names. */
  sessionId?: string | undefined
}

/** Arguments and result of a call for people, or both as JSON. */
export function CallBody({ name, given, before, result, error, sessionId }: CallBodyProps): VNode {
  const [isJson, setJson] = useState(false)
  const hasResult = result.length > 0
  const isEmpty = !hasResult && (given === undefined || Object.keys(given).length === 0)
  return html`<div class="call-body">
    ${!isEmpty && html`<${JsonSwitch} isOn=${isJson} onSwitch=${setJson} />`}
    ${
      isJson
        ? html`<${LongText} text=${jsonOf(given, result)} label=${`JSON of ${name}`} />`
        : html`<${CallArguments} name=${name} given=${given} before=${before} line=${lineOf(result)} sessionId=${sessionId} />
          ${hasResult && html`<${CallResult} name=${name} content=${result} given=${given} sessionId=${sessionId} />`}`
    }
    ${error && html`<p class="problem" dir="auto">${error}</p>`}
  </div>`
}

/** Button between a thing for people and its JSON. */
export const JsonSwitch = ({ isOn, onSwitch }: { isOn: boolean; onSwitch(isOn: boolean): void }): VNode =>
  html`<button type="button" class="json-switch" aria-pressed=${isOn} onClick=${() => onSwitch(!isOn)}>JSON</button>`

function jsonOf(given: Given | undefined, result: ContentPart[]): string {
  const parts = result.map((part) => (part.type === 'text' ? parsed(part.text) : part))
  return JSON.stringify({ arguments: given, result: parts.length === 1 ? parts[0] : parts }, null, 2)
}

/** Returns the line of its file at which an edit began, if the result of the call says so. */
function lineOf(content: ContentPart[]): number | undefined {
  const [first] = content
  const [, line] = first?.type === 'text' && first.text.length < 1000 ? (/"line":\s*(\d+)/.exec(first.text) ?? []) : []
  return line === undefined ? undefined : Number(line)
}
