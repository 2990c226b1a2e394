import { createHash } from 'node:crypto'
import { textOf } from '../../contract/messages.ts'
import { type Actor, NO_USER } from '../kit/actor.ts'
import { DomainError } from '../kit/errors.ts'
import { asUuid, fromId, newUuid } from '../kit/ids.ts'
import { createSession } from '../sessions/create.ts'
import { ToolError } from '../tools/capabilities/capability.ts'
import type { ToolOutput } from '../tools/capabilities/tool-output.ts'
import { type AskedAgent, type AskingCall, AwaitsTurn, type ChildTurn, type ChildTurns } from '../turns/child-turns.ts'
import type { Deps } from '../turns/deps.ts'
import { createMessage } from './create.ts'
import { readTurnAnswer } from './wait.ts'

/** Number of turns above a turn, at most. */
export const MAX_DEPTH = 4
/** Number of turns that the calls of one turn may start. */
export const MAX_CHILDREN = 32
/** Number of turns below the first one. Turns that ask at the same moment may pass it by as many. */
export const MAX_FAMILY = 256

/** Lets tool calls ask agents. */
export const createChildTurns = (deps: () => Deps): ChildTurns => ({
  choose: (call, asked) => chooseTurn(deps(), call, asked),
  ask: (call, child, message, mayStart) => askAgent(deps(), call, child, message, mayStart),
})

async function chooseTurn(deps: Deps, call: AskingCall, { agentId, session }: AskedAgent): Promise<ChildTurn> {
  const { turnId, step } = call
  const [begun] = await deps.db.$queryRaw<{ child: { session_id: string; turn_id: string } | null }[]>`
    SELECT data -> 'child' AS child FROM events
    WHERE turn_id = ${turnId}::uuid AND type = 'tool.started' AND step = ${step}`
  if (begun?.child) return { agentId, sessionId: fromId(begun.child.session_id), turnId: fromId(begun.child.turn_id) }
  const sessionId = session === 'new' ? newUuid() : await findSession(deps, call, agentId)
  return { agentId, sessionId, turnId: newUuid() }
}

/** Returns the session in which a session has asked the agent last. Calls of one turn that begin it agree on its id. */
async function findSession(deps: Deps, { sessionId, turnId }: AskingCall, agentId: string): Promise<string> {
  const [last] = await deps.db.$queryRaw<{ id: string }[]>`
    SELECT c.session_id AS id FROM turns p
    JOIN turns c ON c.ancestors @> ARRAY[p.id] AND c.ancestors[array_upper(c.ancestors, 1)] = p.id
    WHERE p.session_id = ${sessionId}::uuid AND p.children > 0 AND c.agent_id = ${agentId}::uuid
    ORDER BY c.created_at DESC LIMIT 1`
  return last?.id ?? idOf(turnId, agentId)
}

/** Returns the same UUID for all calls of a turn that ask the same agent. */
const idOf = (turnId: string, agentId: string): string =>
  createHash('sha256')
    .update(`${turnId}/${agentId}`)
    .digest('hex')
    .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')

async function askAgent(
  deps: Deps,
  call: AskingCall,
  child: ChildTurn,
  message: string,
  mayStart: boolean,
): Promise<ToolOutput> {
  const { organizationId } = call
  const started = { ...child, organizationId }
  const turn = await deps.db.turn.findFirst({
    where: { id: child.turnId, organizationId },
    select: { finishedAt: true },
  })
  if (turn === null) {
    if (!mayStart) throw new ToolError("The agent's session was deleted.")
    await startChild(deps, call, child, message)
  }
  if (!turn?.finishedAt) throw new AwaitsTurn(started)
  return readAnswer(deps, actorOf(organizationId), child)
}

const actorOf = (organizationId: string, author: { userId?: string | null; apiKeyId?: string | null } = {}): Actor => ({
  organizationId,
  userId: author.userId ?? NO_USER,
  role: 'member',
  apiKeyId: author.apiKeyId ?? null,
})

async function readAnswer(deps: Deps, actor: Actor, { sessionId, turnId }: ChildTurn): Promise<ToolOutput> {
  const place = { sessionUuid: asUuid<'session'>(sessionId), turnUuid: asUuid<'turn'>(turnId) }
  const { turn, output } = await readTurnAnswer(deps, actor, place)
  if (turn.status === 'cancelled') throw new ToolError("The agent's turn was cancelled.")
  if (turn.status !== 'completed') throw new ToolError(`The agent failed: ${turn.error ?? 'its turn has no answer'}`)
  const { id: turn_id, session_id } = turn
  const answer = turn.output ?? textOf(output?.content ?? [])
  return { value: { session_id, turn_id, answer } }
}

/**
 * Records the session, if it is new, and the message to the agent. The caller's workflow starts the turn. Throws
 * `ToolError` where a limit is reached, and `AwaitsTurn` while another turn of the session is unfinished.
 */
async function startChild(deps: Deps, call: AskingCall, child: ChildTurn, message: string): Promise<void> {
  const { organizationId, turnId } = call
  const { db } = deps
  const parent = await db.turn.findFirst({ where: { id: turnId, organizationId } })
  if (parent === null) throw new ToolError('The turn was deleted.')
  const ancestors = [...parent.ancestors, turnId]
  if (ancestors.length > MAX_DEPTH) {
    throw new ToolError(`An agent that was asked by ${MAX_DEPTH} others, one by another, cannot ask any more.`)
  }
  const above = await db.turn.findMany({ where: { id: { in: ancestors }, organizationId }, select: { agentId: true } })
  if (above.some(({ agentId }) => agentId === child.agentId)) {
    throw new ToolError('The agent waits for this answer itself, so it cannot be asked.')
  }
  await refuseLargeFamily(deps, organizationId, ancestors[0] ?? turnId)
  const counted = await db.turn.updateMany({
    where: { id: turnId, organizationId, finishedAt: null, children: { lt: MAX_CHILDREN } },
    data: { children: { increment: 1 } },
  })
  if (counted.count === 0) throw new ToolError(`A turn may ask agents ${MAX_CHILDREN} times, which this one has done.`)
  const actor = actorOf(organizationId, parent)
  const sessionId = asUuid<'session'>(child.sessionId)
  try {
    await createSession(deps, actor, { agent_id: asUuid<'agent'>(child.agentId) }, { uuid: sessionId })
    const content = [{ type: 'text' as const, text: message }]
    const attempt = { uuid: child.turnId, ancestors }
    await createMessage(deps, actor, sessionId, { message: { content }, on_busy: 'reject' }, attempt)
  } catch (error) {
    if (!(error instanceof DomainError)) throw error
    await db.turn.updateMany({ where: { id: turnId, organizationId }, data: { children: { decrement: 1 } } })
    if (error.code === 'session_busy') throw new AwaitsTurn()
    throw error
  }
}

/** Throws `ToolError` when as many turns as may have begun below the first one, by calls of calls. */
async function refuseLargeFamily({ db }: Deps, organizationId: string, firstId: string): Promise<void> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int FROM (
      SELECT FROM turns WHERE ancestors IS NOT NULL AND ancestors @> ARRAY[${firstId}::uuid]
        AND organization_id = ${organizationId}::uuid LIMIT ${MAX_FAMILY}
    ) AS below`
  if ((row?.count ?? 0) >= MAX_FAMILY)
    throw new ToolError(`Agents have asked agents ${MAX_FAMILY} times for one message, which is the limit.`)
}
