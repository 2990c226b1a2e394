import type { Event } from 'agent-session-client'
import { CallArguments } from '../../parts/call/arguments.ts'
import { isOfFiles } from '../../parts/call/file-path.ts'
import { CallResult } from '../../parts/call/result.ts'
import { exitCodeOf } from '../../parts/call/results.ts'
import { durationOf } from '../../parts/duration.ts'
import { link } from '../../router.ts'
import { html, type VNode } from '../../ui.ts'
import { textOf } from '../session/conversation.ts'
import { Metrics } from './facts.ts'
import { eventsOfStep } from './input.ts'
import type { Span } from './spans.ts'

type Props = { span: Span; spans: Span[]; sessionId: string }

/** Run of a tool, or the wait for a person before it: its arguments and its result. */
export function ToolRun({ span, spans, sessionId }: Props): VNode | null {
  const id = callIdOf(span)
  const started = span.events.find((event) => event.type === 'tool.started')
  const completed = span.events.find((event) => event.type === 'tool.completed')
  const requested = eventsOfStep(spans, span.key)
    .flatMap((event) => (event.type === 'tool.call_requested' ? event.data.tool_calls : []))
    .find((call) => call.id === id)
  const name = started?.data.tool_call.name ?? requested?.name ?? completed?.data.tool_name ?? ''
  const given = started?.data.tool_call.arguments ?? requested?.arguments
  const content = completed?.data.result ?? []
  const child = started?.data.child
  const files = completed?.data.success && isOfFiles(name) ? sessionId : undefined
  return html`
    <${Metrics} metrics=${metricsOf(name, child ? undefined : completed)} />
    ${child && html`<p><a href=${link('sessions', child.session_id, 'turns', child.turn_id)}>Timeline of the agent that was asked</a></p>`}
    <h3>Arguments</h3>
    <${CallArguments} name=${name} given=${given} sessionId=${files} />
    ${given !== undefined && Object.keys(given).length === 0 && html`<p class="quiet">None.</p>`}
    ${content.length > 0 && html`<h3>Result</h3><${CallResult} name=${name} content=${content} given=${given} sessionId=${files} />`}`
}

/** Returns the id of the call to which a span belongs. */
const callIdOf = ({ key }: Span): string => key.slice(key.indexOf('-') + 1).replace(/-waiting$/, '')

type Completed = Extract<Event, { type: 'tool.completed' }>

function metricsOf(name: string, completed: Completed | undefined): Record<string, string | undefined> {
  const { duration_ms, result } = completed?.data ?? {}
  const code = exitCodeOf(textOf(result ?? []))
  return {
    Tool: name,
    Duration: duration_ms === null || duration_ms === undefined ? undefined : durationOf(duration_ms),
    'Exit code': code === undefined ? undefined : `${code}`,
  }
}
