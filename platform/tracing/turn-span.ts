import type { Attributes } from '@opentelemetry/api'
import { toId } from '../../domain/kit/ids.ts'
import type { TracedTurn } from '../../domain/kit/tracing.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import { ATTRIBUTE, OPERATION, OWN_PROVIDER } from './conventions.ts'

/** A turn that has ended, as its span describes it. `startedAt` is its end if it never began. */
export type EndedTurn = TracedTurn & {
  status: string
  errorCode: string | null
  createdAt: Date
  startedAt: Date
  finishedAt: Date
  inputTokens: number
  outputTokens: number
  agentId: string | null
  agentName: string | null
}

/** Reads a turn that has ended. Undefined if it is gone with its session. */
export async function readEndedTurn(db: PrismaClient, turnId: string): Promise<EndedTurn | undefined> {
  const [turn] = await db.$queryRaw<EndedTurn[]>`
    SELECT t.id AS "turnId", t.session_id AS "sessionId", t.traceparent, t.status::text, t.error_code AS "errorCode",
      t.created_at AS "createdAt", coalesce(t.started_at, t.finished_at) AS "startedAt", t.finished_at AS "finishedAt",
      t.input_tokens::float8 AS "inputTokens", t.output_tokens::float8 AS "outputTokens",
      s.agent_id AS "agentId", a.name AS "agentName"
    FROM turns t JOIN sessions s ON s.id = t.session_id
    LEFT JOIN agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
    WHERE t.id = ${turnId}::uuid AND t.finished_at IS NOT NULL`
  return turn
}

export function turnAttributes(turn: EndedTurn): Attributes {
  const errorType = turn.status === 'completed' ? undefined : (turn.errorCode ?? turn.status)
  return {
    [ATTRIBUTE.operation]: OPERATION.turn,
    [ATTRIBUTE.provider]: OWN_PROVIDER,
    [ATTRIBUTE.conversation]: toId('session', turn.sessionId),
    [ATTRIBUTE.turn]: toId('turn', turn.turnId),
    [ATTRIBUTE.queueSeconds]: Math.max(0, turn.startedAt.getTime() - turn.createdAt.getTime()) / 1000,
    [ATTRIBUTE.inputTokens]: turn.inputTokens,
    [ATTRIBUTE.outputTokens]: turn.outputTokens,
    ...(turn.agentId !== null && { [ATTRIBUTE.agent]: toId('agent', turn.agentId) }),
    ...(turn.agentName !== null && { [ATTRIBUTE.agentName]: turn.agentName }),
    ...(errorType !== undefined && { [ATTRIBUTE.errorType]: errorType }),
  }
}
