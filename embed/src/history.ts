import { ApiError, type Client, type SessionClient } from 'agent-session-client'
import type { Memory } from './memory.ts'
import { type PastTurn, turnsOf } from './past-turns.ts'

/** Latest messages of a session that are shown, and latest turns whose state is asked for. */
const MAX_MESSAGES = 200
const MAX_TURNS = 100

/** Loads the conversation so far. Messages that were on their way when the page was left are posted first. */
export async function loadHistory(
  client: Client,
  session: SessionClient,
  memory: Memory,
  signal: AbortSignal,
): Promise<PastTurn[]> {
  await postUnsettled(session, memory, signal)
  // Before the messages: a turn that ends in between is followed, and its messages are not shown twice.
  const { data } = await client.turns.list({ session_id: session.id, limit: MAX_TURNS }, { signal })
  const messages = await session.messages({ order: 'desc', limit: MAX_MESSAGES })
  return turnsOf(messages.reverse(), data)
}

/** Posts the messages of this session. The key makes the service accept each of them once. */
async function postUnsettled(session: SessionClient, memory: Memory, signal: AbortSignal): Promise<void> {
  for (const { key, content } of memory.unsettled().filter((one) => one.session === session.id)) {
    const stop = new AbortController()
    const answer = session.send(content, { idempotencyKey: key, signal: AbortSignal.any([signal, stop.signal]) })
    await answer.turnId.catch((error) => {
      if (!isRefused(error)) throw error
    })
    stop.abort()
    if (!signal.aborted) memory.settle(key)
  }
}

/** Reports whether the message would be refused again. */
const isRefused = (error: unknown): boolean => error instanceof ApiError && [400, 404, 409, 413].includes(error.status)
