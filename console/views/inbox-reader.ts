import type { Turn } from 'agent-session-client'
import { isNotFound, readPages } from '../load.ts'
import { readAgentName } from '../parts/agent-select.ts'
import { api } from '../service.ts'
import type { AskingSession, Waiting } from './inbox-cards.ts'
import { textOf } from './session/conversation.ts'

/** Creates a reader of waiting turns, which remembers their sessions and agents. `agents` has the names by id. */
export function createReader() {
  const places = new Map<string, AskingSession>()
  const agents = new Map<string, string>()
  const names = new Map<string, Promise<string | undefined>>()

  const nameOf = (agent_id: string): Promise<string | undefined> => {
    const known = names.get(agent_id) ?? readName(agent_id)
    names.set(agent_id, known)
    return known
  }
  const readName = async (agent_id: string): Promise<string | undefined> => {
    try {
      const name = await readAgentName(agent_id)
      if (name !== undefined) agents.set(agent_id, name)
      return name
    } catch (error) {
      names.delete(agent_id)
      throw error
    }
  }
  /** Returns undefined for a session deleted meanwhile. */
  const findPlace = async (session_id: string): Promise<AskingSession | undefined> => {
    try {
      const session = await api.sessions.get({ session_id })
      return { session, agent: session.agent_id ? await nameOf(session.agent_id) : undefined }
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }
  /** Reads the turns that began first, in pages, and their sessions unless known. */
  const read = async (count: number, agent: string): Promise<Waiting[]> => {
    const query = { status: ['waiting' as const], order: 'longest' as const, ...(agent && { agent_id: agent }) }
    const turns: Turn[] = await readPages((part) => api.turns.listWaitingTurns({ ...query, ...part }), count)
    const waiting = new Set(turns.map(({ session_id }) => session_id))
    for (const id of places.keys()) if (!waiting.has(id)) places.delete(id)
    await Promise.all(
      [...waiting].map(async (id) => {
        const place = places.get(id) ?? (await findPlace(id))
        if (place !== undefined) places.set(id, place)
      }),
    )
    return turns.map((turn) => ({ turn, place: places.get(turn.session_id) }))
  }
  return { agents, read }
}

/** Circumstances of waiting calls: when they asked, what the agent had said before, and their tools' names for people. */
export type Context = { askedAt: string | undefined; said: string; titles: Map<string, string> }

const TYPES = ['output.message.completed' as const, 'act.started' as const, 'tool.call_requested' as const]
const MAX_EVENTS = 1000
const SAID_CHARACTERS = 2000

/** Reads the circumstances of a waiting turn from its events. */
export async function readContext({ id, session_id }: Turn): Promise<Context> {
  const { data } = await api.events.list({ session_id, turn_id: id, types: TYPES, limit: MAX_EVENTS })
  let [askedAt, said]: [string | undefined, string] = [undefined, '']
  const titles = new Map<string, string>()
  for (const event of data) {
    if (event.type === 'output.message.completed') said = textOf(event.data.message.content).trim() || said
    else if (event.type === 'tool.call_requested') askedAt = event.ts
    else if (event.type === 'act.started')
      for (const call of event.data.tool_calls) titles.set(call.id, call.display_name ?? call.name)
  }
  return { askedAt, said: said.slice(0, SAID_CHARACTERS), titles }
}
