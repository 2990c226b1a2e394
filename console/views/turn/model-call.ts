import type { Message, TokenUsage, Turn } from 'agent-session-client'
import { useLoad } from '../../load.ts'
import { costOf } from '../../parts/cost.ts'
import { durationOf } from '../../parts/duration.ts'
import { Fold } from '../../parts/fold.ts'
import { LongText } from '../../parts/long-text.ts'
import { Markdown } from '../../parts/markdown.ts'
import { Problem, Quiet } from '../../parts/page.ts'
import { html, useMemo, type VNode } from '../../ui.ts'
import { Metrics } from './facts.ts'
import { readGeneration } from './generation.ts'
import { type Answer, eventsOfStep, type Generation } from './input.ts'
import { CallOf, Messages, type Names } from './messages.ts'
import type { Span } from './spans.ts'
import { SystemPrompt } from './system-prompt.ts'

type Props = { span: Span; spans: Span[]; turn: Turn | undefined }

/** Call of a model: its numbers, its exact input, and its output. */
export function ModelCall({ span, spans, turn }: Props): VNode {
  const events = eventsOfStep(spans, span.key)
  // All attempts of a step have the same input, which is recorded with the last one.
  const generation = events.find((event) => event.type === 'llm.generation')
  const answer = events.find((event) => event.type === 'output.message.completed')
  const isOwn = generation !== undefined && span.events.includes(generation)
  const names = useMemo(
    () => new Map((generation?.data.tools ?? []).map(({ name, display_name }) => [name, display_name ?? name])),
    [generation],
  )
  if (generation === undefined)
    return html`<${Quiet}>${span.to === undefined ? 'The input and the output are recorded when the call ends.' : 'The call did not end, so its input was not recorded.'}<//>`
  return html`
    ${isOwn && html`<${Metrics} metrics=${metricsOf(generation, answer)} />`}
    <h3>Input</h3>
    <${SystemPrompt} turn=${turn} hash=${generation.data.metadata.system_prompt_sha256} />
    <${Tools} generation=${generation} />
    ${generation.data.metadata.output_schema_sha256 && html`<p class="quiet">The output has to fit a schema.</p>`}
    <${Input} generation=${generation} spans=${spans} names=${names} />
    ${isOwn && html`<h3>Output</h3><${Output} generation=${generation} answer=${answer} names=${names} />`}`
}

/** Reasons for which answers end, as people read them. */
const REASONS: Record<string, string> = {
  stop: 'Finished',
  tool_calls: 'Calls tools',
  length: 'Output limit',
  content_filter: 'Content filter',
}

/** Returns the parameters and numbers of a call. Unknown ones are left out. */
function metricsOf({ data: { metadata } }: Generation, answer: Answer | undefined): Record<string, string | undefined> {
  const { model, provider, duration_ms, time_to_first_token_ms, finish_reasons, usage, retry, compaction } = metadata
  const effort = metadata.reasoning_effort ?? answer?.data.message.metadata?.reasoning_effort
  const { input_tokens_before: before, input_tokens_after: after } = compaction ?? {}
  return {
    Model: model,
    Provider: provider ?? undefined,
    'Reasoning effort': typeof effort === 'string' ? effort : undefined,
    'Output limit': metadata.max_output_tokens ? `${metadata.max_output_tokens.toLocaleString()} tokens` : undefined,
    Duration: msOf(duration_ms),
    'First token': msOf(time_to_first_token_ms),
    ...tokensOf(usage),
    Cost: metadata.cost_usd ? costOf(metadata.cost_usd) : undefined,
    Finish: finish_reasons?.map((reason) => REASONS[reason] ?? reason).join(', '),
    Retries: retry ? `${retry.attempts}, after ${durationOf(retry.total_wait_ms)} of waiting` : undefined,
    'Input shortened':
      before && after ? `from ${before.toLocaleString()} to ${after.toLocaleString()} tokens` : undefined,
  }
}

const msOf = (ms: number | null | undefined): string | undefined =>
  ms === null || ms === undefined ? undefined : durationOf(ms)

const tokensOf = (usage: TokenUsage | null | undefined): Record<string, string | undefined> => ({
  'Tokens in': usage?.input_tokens.toLocaleString(),
  'Tokens out': usage?.output_tokens.toLocaleString(),
  'From the cache': usage?.cache_read_tokens?.toLocaleString(),
  'To the cache': usage?.cache_creation_tokens?.toLocaleString(),
})

/** Tools that the model could call. */
function Tools({ generation }: { generation: Generation }): VNode | null {
  const { tools = [] } = generation.data
  if (tools.length === 0) return null
  const list = () =>
    html`<dl class="values">${tools.map(
      ({ name, description }) =>
        html`<div key=${name}><dt><code>${name}</code></dt><dd dir="auto">${description}</dd></div>`,
    )}</dl>`
  return html`<${Fold} className="earlier" summary=${`${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`} content=${list} />`
}

type InputProps = { generation: Generation; spans: Span[]; names: Names }

/** Messages of a call, which are read now: they are the whole conversation. */
function Input({ generation, spans, names }: InputProps): VNode {
  const { value, error } = useLoad(() => readGeneration(generation, spans), [generation.id])
  if (value === undefined)
    return error === undefined ? html`<${Quiet}>Loading…<//>` : html`<${Problem} error=${error} />`
  return html`<${Messages} messages=${value.data.messages} names=${names} />`
}

type OutputProps = { generation: Generation; answer: Answer | undefined; names: Names }

/** Answer of a model: its thinking, its text, and its calls. */
function Output({ generation, answer, names }: OutputProps): VNode {
  const { text, tool_calls = [] } = generation.data.output
  const message: Message | undefined = answer?.data.message
  const { error } = generation.data.metadata
  return html`
    ${error && html`<p class="problem" dir="auto">${error}</p>`}
    ${message?.thinking && html`<${Fold} summary="Thinking" content=${() => html`<${LongText} text=${message.thinking ?? ''} label="Thinking" />`} />`}
    ${text && html`<${Markdown} text=${text} />`}
    ${tool_calls.map((call, index) => html`<${CallOf} key=${index} call=${call} names=${names} />`)}
    ${!error && !text && tool_calls.length === 0 && html`<${Quiet}>The answer is empty.<//>`}`
}
