/** Model that streams an answer at the pace of a real one, for some seconds. */
export const SLOW_MODEL_ID = 'model_01933b5a000070008000000000000102'

export type Ask = (method: string, path: string, body?: object) => Promise<Record<string, unknown>>
export type TurnCount = { turns: number; restarted: string[] }

type Event = { type: string; context?: { turn_id?: string } }

/** Runs turns in a session of their own, one after the other, until `stop` is called. */
export function runTurns(ask: Ask, sessionId: string): { stop(): Promise<TurnCount> } {
  let isStopped = false
  const run = async () => {
    while (!isStopped) {
      const message = { content: [{ type: 'text', text: 'Hello' }] }
      await ask('POST', `/v1/sessions/${sessionId}/messages?wait=120`, { message })
    }
  }
  const running = run()
  return {
    async stop() {
      isStopped = true
      await running
      return countSteps(ask, sessionId)
    },
  }
}

/** Counts the session's turns, and names those whose model was asked, or whose message begun, other than once. */
async function countSteps(ask: Ask, sessionId: string): Promise<TurnCount> {
  const { data } = (await ask('GET', `/v1/sessions/${sessionId}/events`)) as { data: Event[] }
  const counts = new Map<string, Record<string, number>>()
  for (const { type, context } of data) {
    const turn = context?.turn_id
    if (turn === undefined) continue
    const count = counts.get(turn) ?? {}
    count[type] = (count[type] ?? 0) + 1
    counts.set(turn, count)
  }
  const ONCE = ['turn.started', 'output.message.started', 'llm.generation', 'turn.completed']
  const isPlain = (count: Record<string, number>) => ONCE.every((type) => count[type] === 1)
  const restarted = [...counts]
    .filter(([, count]) => !isPlain(count))
    .map(([turn, count]) => `${turn} ${JSON.stringify(count)}`)
  return { turns: counts.size, restarted }
}
