import type { Edit } from './edits.ts'

/** Place of a point: in front of this text, which is in the file exactly once, between two statements. */
type Place = [file: string, before: string]

const TURNS = 'domain/turns'

/** Places in the service at which a fault hurts, by name. */
const PLACES = {
  'message.before-commit': ['domain/messages/create.ts', 'const inserted = await insertMessage(deps.db, {'],
  'message.committed': ['domain/messages/create.ts', 'publishEvents(deps, message.sessionId, message.turnId, events)'],
  'message.busy-committed': ['domain/messages/create.ts', 'notifyCancelled(deps, organizationId, cancelled)'],
  'start.before': [`${TURNS}/start.ts`, 'await deps.workflows.startTurn('],
  'start.done': [`${TURNS}/start.ts`, 'deps.attempts.reportStart(true)'],
  'step.begins': ['worker/activities.ts', 'const begun = await deps.attempts.begin('],
  'step.adopted': ['worker/activities.ts', 'const adopted = await deps.attempts.adopt('],
  'reason.claimed': [`${TURNS}/run/reason.ts`, 'call.attempt.early?.claimed()'],
  'reason.answered': [`${TURNS}/run/reason.ts`, 'const isCutSummary ='],
  'model.heard': [`${TURNS}/run/answer.ts`, 'if (!hasAnswered) call.attempt.early?.heard()'],
  'delta.appended': [`${TURNS}/run/answer.ts`, "\n  }\n  const turn_id = toId('turn', call.context.turnId)"],
  'append.before': ['domain/events/log/append.ts', 'const recorded = await (mayShare('],
  'append.committed': ['domain/events/log/append.ts', 'const appended = toAppended(deps, writer, events, recorded)'],
  'group.before': ['domain/events/log/group-commit.ts', 'const results = await together('],
  'group.committed': [
    'domain/events/log/group-commit.ts',
    'for (const [index, { append, resolve }] of group.entries())',
  ],
  'act.begun': [`${TURNS}/run/reason.ts`, "return { outcome: 'act', model: call.model.name, ...plan }"],
  'tool.claimed': [`${TURNS}/run/tool.ts`, 'const askAgent = child && askOf('],
  'tool.ran': [`${TURNS}/run/tool.ts`, 'const waited = ran instanceof AwaitsTurn'],
  'tool.recorded': [`${TURNS}/run/tool.ts`, "return { outcome: 'done' }\n  })"],
  'calls.requested': [`${TURNS}/control/client-calls.ts`, 'return settleCalls(deps, turn, iteration)'],
  'results.before-commit': [`${TURNS}/control/client-calls.ts`, 'const toolCallId = { in: results.map('],
  'results.committed': [`${TURNS}/control/client-calls.ts`, 'const { turn, isWaiting, at } = submitted'],
  'notice.before': [`${TURNS}/control/workflow-outbox.ts`, 'await (hasEnded ? deps.workflows'],
  'notice.sent': [`${TURNS}/control/workflow-outbox.ts`, 'await deps.db.turn.updateMany({'],
  'cancel.before-commit': [`${TURNS}/control/cancel.ts`, 'const told = ended.cancelled.map('],
  'cancel.committed': [`${TURNS}/control/cancel.ts`, 'notifyCancelled(deps, where.organizationId, cancelled)'],
  'turn.ended': [`${TURNS}/run/end-turn.ts`, "startNext(deps, context, nextTurnId, 'early')"],
  'turn.next-started': [`${TURNS}/run/end-turn.ts`, 'passPlaceOn(deps, context)\n'],
  'takeover.taken': [`${TURNS}/sweep/lost-activities.ts`, 'let failed = 0'],
  'takeover.released': [`${TURNS}/sweep/lost-activities.ts`, 'await leaveDead(deps, number'],
  'lease.renewed': ['worker/lease.ts', 'clearTimeout(runsOut)\n    runsOut ='],
  'relay.sends': ['domain/events/live/relay.ts', 'for (const socket of sockets) socket?.cork()'],
  'relay.read': ['domain/events/live/relay.ts', '// Readers in this process have its own entries already.'],
  'follow.reads': ['domain/events/read/follow.ts', 'const page = await unlessAborted('],
  'follow.read': ['domain/events/read/follow.ts', "if (page === undefined) return 'aborted'"],
  'deletion.committed': ['domain/upkeep/session-deletion/delete-session.ts', 'deps.conversations.delete(deleted.id)'],
  'deletion.removed': [
    'domain/upkeep/session-deletion/delete-session.ts',
    'await deps.db.deletedSession.deleteMany({ where: { id } })',
  ],
  'retention.before': ['domain/upkeep/retention.ts', 'deleted.deltas += await deleteDeltas('],
  'retention.deleted': ['domain/upkeep/retention.ts', 'deleted.turns += await markTurns('],
  'launch.recorded': ['domain/schedules/clock/launch.ts', 'if (recorded !== undefined) return started('],
  'execution.begins': ['domain/schedules/executions/execute.ts', 'const execution = await begin(deps, place)'],
  'execution.begun': ['domain/schedules/executions/execute.ts', 'const result = await runTarget('],
  'execution.ran': ['domain/schedules/executions/execute.ts', 'signal.throwIfAborted()'],
  'fork.copied': ['domain/forks/fork.ts', 'await copyTurns(db, id, history.turns)'],
  'fork.committed': ['domain/forks/fork.ts', "const forkId = asUuid<'session'>(id)"],
} satisfies Record<string, Place>

/** Name of a place in the service at which a fault may happen. */
export type PointName = keyof typeof PLACES

export const POINTS = Object.keys(PLACES) as PointName[]

/** Edits that put the points into the source: each calls `__point`, which returns when the process may go on. */
export const pointEdits: Edit[] = POINTS.map((name) => {
  const [file, before] = PLACES[name]
  return { file, find: before, replace: `;globalThis.__point('${name}'); ${before}` }
})
