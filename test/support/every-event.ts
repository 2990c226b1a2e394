import { call, createScriptedSession, type Json, listEvents, type Target, waitFor, waitUntilIdle } from './http.ts'
import { cancel, clientTool, post, postAndAsk, submit, turnIdOf } from './turns.ts'

const WEATHER = { id: 'call_weather', name: 'get_weather', arguments: { location: 'Oslo' } }
const REPORT = { id: 'call_report', name: 'report', arguments: {} }
const ASK = { id: 'call_ask', name: 'ask_user', arguments: { question: 'Today?' } }

/** Steps of five turns: an answer with thinking and tools, one after a retry, a failure, one to be cancelled, and a summary. */
const STEPS = [
  { thinking: 'There is a tool for it.', text: 'One moment.', tool_calls: [WEATHER, ASK] },
  { text: 'Take an umbrella.' },
  { error: { status: 503, message: 'overloaded', times: 1, retry_after_ms: 100 }, text: 'You are welcome.' },
  { error: { status: 400, message: 'the prompt is too long' } },
  { text: 'This takes a while.', tokens_per_second: 0.5 },
  { text: 'They need an umbrella.' },
]

/**
 * Runs a short conversation that has events of every type. Returns them. Only a `reporter`, the capability of a tool
 * named report, has progress.
 */
export async function playEveryEvent(target: Target, reporter?: string): Promise<Json[]> {
  const tools = [clientTool('ask_user', { question: { type: 'string' } })]
  const [first, ...rest] = STEPS
  const calls = [...(first?.tool_calls ?? []), ...(reporter === undefined ? [] : [REPORT])]
  const capabilities = ['test_weather', ...(reporter === undefined ? [] : [reporter])].map((ref) => ({ ref }))
  const id = await createScriptedSession(target, [{ ...first, tool_calls: calls }, ...rest], { capabilities, tools })
  await postAndAsk(target, id, 'Umbrella?')
  await submit(target, id, [{ tool_call_id: ASK.id, result: 'yes' }])
  await waitUntilIdle(target, id)
  for (const text of ['Thanks', 'And then?']) await post(target, id, text, {}, '?wait=60')
  const deltas = `?types=output.message.delta&turn_id=${turnIdOf(await post(target, id, 'Go on'))}`
  await waitFor(async () => (await listEvents(target, id, deltas)).length > 0, 'the last answer to begin')
  await cancel(target, id)
  await call(target, 'POST', `/v1/sessions/${id}/compact`)
  return waitUntilIdle(target, id)
}
