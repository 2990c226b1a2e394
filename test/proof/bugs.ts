import type { Edit } from './edits.ts'

/** Bug that the histories must find, as edits of the source. */
export type Bug = { name: string; edits: Edit[] }

const RECORD = 'prisma/functions/record_events.sql'
const CANCEL = 'domain/turns/control/cancel.ts'
const CREATE = 'domain/messages/create.ts'
const CALLS = 'domain/turns/control/client-calls.ts'
const RETENTION = 'domain/upkeep/retention.ts'
const FOLLOW = 'domain/events/read/follow.ts'

const bug = (name: string, file: string, find: string, replace: string): Bug => ({
  name,
  edits: [{ file, find, replace }],
})

/** Every one of them breaks a promise of the model, most only when a process dies at the wrong moment. */
export const BUGS: Bug[] = [
  bug(
    'a fence is left out: an attempt goes on writing after another has taken its step',
    RECORD,
    'IF v_fence > p_fence OR (v_fence <> p_fence AND p_fence < 0) THEN',
    'IF false THEN',
  ),
  {
    name: 'an append has no key: an event is recorded again by the next attempt',
    edits: [
      {
        file: RECORD,
        find: 'CREATE OR REPLACE FUNCTION',
        replace: 'DROP INDEX events_once;\nCREATE OR REPLACE FUNCTION',
      },
      {
        file: RECORD,
        find: `
    ON CONFLICT (turn_id, type, step)
      WHERE type NOT IN ('output.message.started', 'output.message.delta', 'reason.thinking.delta')
      DO NOTHING;`,
        replace: ';',
      },
    ],
  },
  bug(
    'events are appended to a turn that has ended',
    RECORD,
    "IF v_status IN ('completed', 'failed', 'cancelled') THEN",
    'IF false THEN',
  ),
  {
    name: 'a turn begins while an earlier one is unfinished',
    // Two places prevent it.
    edits: [
      {
        file: RECORD,
        find: "IF v_status = 'queued' AND p_turn_id IS DISTINCT FROM next_queued_turn(p_session_id) THEN",
        replace: 'IF false THEN',
      },
      { file: CREATE, find: 'if (inserted.isNext) startTurnSoon(', replace: 'startTurnSoon(' },
    ],
  },
  bug(
    'a session goes idle while a turn is queued',
    RECORD,
    "IF v_event.announces ->> 'session_status' = 'idle' THEN",
    'IF false THEN',
  ),
  bug(
    'a turn ends without reading the message that joined it',
    RECORD,
    'IF v_turn.steer_sequence IS NOT NULL AND EXISTS (',
    'IF false AND EXISTS (',
  ),
  bug(
    'the relay skips: a follower takes the next line for the one it misses',
    FOLLOW,
    "if (entry.sequence !== position.cursor + 1 || entry.line === '') {",
    "if (entry.line === '') {",
  ),
  bug(
    'a reader begins one event too late',
    FOLLOW,
    'const position: Position = { cursor: after, isBehind: true }',
    'const position: Position = { cursor: after === 0 ? 0 : after + 1, isBehind: true }',
  ),
  bug(
    'a cancel forgets the queue',
    CANCEL,
    'const done = await withLockedSession(deps, where, (session) => endAndTell(session, actor, { turnIds, reason }))',
    `const done = await withLockedSession(deps, where, async (session) => {
      const head = await session.db.turn.findFirst({ where: { sessionId: where.sessionId, finishedAt: null }, orderBy: { inputSequence: 'asc' } })
      return endAndTell(session, actor, { turnIds: turnIds ?? (head ? [head.id] : []), reason })
    })`,
  ),
  bug(
    'a cancelled answer keeps the text of every attempt',
    CANCEL,
    'AND sequence > last.sequence AND exec_id = last.exec_id',
    'AND step = last.step',
  ),
  bug(
    'an interrupting message leaves queued turns alone',
    CREATE,
    "return cancelUnfinished(session, { reason: 'interrupted by a new message', afterwards: 'goes_on' })",
    "return head ? cancelUnfinished(session, { turnIds: [head.id], reason: 'interrupted by a new message', afterwards: 'goes_on' }) : []",
  ),
  bug(
    'a repeated request sends its message again',
    CREATE,
    'find: (turnId) => findAccepted(deps, { ...place, turnId: asUuid(turnId) }, input.on_busy),\n    insert: (turnId) => acceptMessage(deps, { ...place, turnId: asUuid(turnId) }, from, input),',
    'find: async () => undefined,\n    insert: () => acceptMessage(deps, { ...place, turnId: asUuid(crypto.randomUUID()) }, from, input),',
  ),
  bug(
    'the results of some calls are not waited for',
    CALLS,
    "if (missing.length > 0 && whenMissing === 'wait')",
    "if (missing.length > 1 && whenMissing === 'wait')",
  ),
  bug('a denied call runs', CALLS, 'if (decision?.isApproved) {', 'if (decision !== undefined) {'),
  bug(
    'a share leaks: no process sweeps half of the lost starts',
    'domain/turns/sweep/lost-starts.ts',
    'AND NOT EXISTS (SELECT FROM waiting_steps WHERE turn_id = t.id)',
    "AND NOT EXISTS (SELECT FROM waiting_steps WHERE turn_id = t.id) AND substr(t.id::text, 36, 1) < '8'",
  ),
  bug(
    'a notice is forgotten before Temporal has it',
    'domain/turns/control/workflow-outbox.ts',
    'const owner = await deps.owners.ownerOf(organizationId)\n',
    `const owner = await deps.owners.ownerOf(organizationId)
  await deps.db.turn.updateMany({ where: { id: turnId }, data: { noticeDueAt: null } })
`,
  ),
  bug(
    'a dead process keeps its activities',
    'domain/turns/sweep/lost-activities.ts',
    'await release(deps, run, number).catch(',
    'await Promise.resolve().catch(',
  ),
  {
    name: 'a tool writes again after a crash',
    // Two places prevent it.
    edits: [
      {
        file: 'prisma/functions/claim_session_write.sql',
        find: 'IF v_step.effect IS NOT NULL THEN',
        replace: 'IF false THEN',
      },
      {
        file: 'domain/session-data/databases/open-session-databases.ts',
        find: 'return (row?.effect ?? undefined)',
        replace: 'return (row && undefined)',
      },
    ],
  },
  {
    name: 'retention deletes the text of an unfinished answer',
    edits: [
      {
        file: RETENTION,
        find: "AND complete.type IN ('output.message.completed', 'reason.completed', 'act.completed')",
        replace:
          "AND complete.type IN ('reason.started', 'output.message.completed', 'reason.completed', 'act.completed')",
      },
      { file: RETENTION, find: 'max(complete.sequence) AS "to"', replace: '2147483647 AS "to"' },
    ],
  },
  bug(
    'a fork loses the last event',
    'domain/forks/copy-history.ts',
    "AND type IN ('turn.completed', 'turn.failed', 'turn.cancelled', 'session.idled')\n        )",
    "AND type IN ('turn.completed', 'turn.failed', 'turn.cancelled')\n        )",
  ),
]
