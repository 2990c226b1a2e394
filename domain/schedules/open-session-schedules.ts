import type { Prisma, Schedule } from '../../prisma/generated/client.ts'
import { conflict, invalid, quotaExceeded } from '../kit/errors.ts'
import { newUuid, toId } from '../kit/ids.ts'
import { lockOrganization } from '../kit/lock-organization.ts'
import { type CallScope, WriterLost } from '../kit/session-scope.ts'
import { waitForLocks } from '../kit/wait-for-locks.ts'
import type { NewSessionSchedule, SessionSchedule, SessionSchedules } from '../tools/capabilities/session-schedules.ts'
import { readNextTimes } from './clock/next-times.ts'
import { cronOfTime, parseTime, timeOfCron } from './clock/one-off.ts'
import { syncClock } from './clock/sync.ts'
import { insertSchedule } from './create.ts'
import { checkTimezone } from './cron/check-timezone.ts'
import { parseCron } from './cron/parse.ts'
import { deleteLocked } from './delete.ts'
import type { Deps } from './deps.ts'
import type { SessionMessageInput } from './targets/inputs.ts'

/** Maximum number of schedules that tool calls may create in one session. */
export const MAX_PER_SESSION = 50
const MAX_MESSAGE_BYTES = 32 * 1024
/** Characters of a message in a list. A full list has at most 300 KB as JSON. */
const SHOWN_CHARACTERS = 1000

const TIMEOUT_MS = 15_000
const MAX_WAIT_MS = 5_000

/** Opens, for a tool call, the schedules created by its session's tool calls. */
export const openSessionSchedules = (deps: Deps, scope: CallScope): SessionSchedules => ({
  create: (wanted) => createOfSession(deps, scope, wanted),
  list: () => listOfSession(deps, scope),
  delete: (name) => deleteOfSession(deps, scope, name),
})

async function createOfSession(deps: Deps, scope: CallScope, wanted: NewSessionSchedule): Promise<SessionSchedule> {
  const { id, ...made } = await changeOnce(deps, scope, async (tx) => {
    const id = newUuid()
    // Checked only here: a repeated call may come after its time has passed.
    const fields = fieldsOf(scope, wanted)
    await insertWithin(deps, tx, { id, ...fields })
    const { toolName, cronExpression, timezone, isOneOff } = fields
    return { id, toolName, cronExpression, timezone, isOneOff }
  })
  await syncClock(deps, id)
  const row = await deps.db.schedule.findFirst({ where: { id, deletedAt: null } })
  const [presented] = row === null ? [] : await present(deps, [row])
  // A repeated call may find that the schedule has been deleted meanwhile.
  return presented ?? { ...shown({ ...made, enabled: false }, wanted.message), next_run: null }
}

const listOfSession = async (deps: Deps, { organizationId, sessionId }: CallScope): Promise<SessionSchedule[]> =>
  present(
    deps,
    await deps.db.schedule.findMany({
      where: { organizationId, sessionId, toolName: { not: null }, deletedAt: null },
      orderBy: { toolName: 'asc' },
      take: MAX_PER_SESSION,
    }),
  )

async function deleteOfSession(deps: Deps, scope: CallScope, name: string): Promise<{ deleted: boolean }> {
  const { id } = await changeOnce(deps, scope, async (tx) => ({ id: await deleteWithin(tx, scope, name) }))
  if (id !== null) await syncClock(deps, id)
  return { deleted: id !== null }
}

/** Deletes a schedule. Returns its id, or null if it does not exist. */
async function deleteWithin(
  tx: Prisma.TransactionClient,
  { organizationId, sessionId }: CallScope,
  name: string,
): Promise<string | null> {
  const [row] = await tx.$queryRaw<{ id: string }[]>`
    SELECT id FROM schedules
    WHERE organization_id = ${organizationId}::uuid AND session_id = ${sessionId}::uuid AND tool_name = ${name}
      AND deleted_at IS NULL
    FOR NO KEY UPDATE`
  if (row === undefined) return null
  await deleteLocked(tx, { organizationId }, row.id)
  return row.id
}

type Fields = Pick<
  Schedule,
  'organizationId' | 'sessionId' | 'name' | 'toolName' | 'cronExpression' | 'timezone' | 'isOneOff'
> & {
  organizationId: string
  toolName: string
  targetInput: SessionMessageInput
  launchedUntil?: Date
}

/** Checks a schedule and returns its columns. Throws `invalid`. */
function fieldsOf({ organizationId, sessionId }: CallScope, wanted: NewSessionSchedule): Fields {
  const { name: toolName, message, timezone } = wanted
  const bytes = Buffer.byteLength(message)
  if (bytes > MAX_MESSAGE_BYTES) throw invalid(`message: must be at most ${MAX_MESSAGE_BYTES} bytes of UTF-8`)
  checkTimezone(timezone)
  const times = timesOf(wanted)
  const id = toId('session', sessionId)
  const targetInput = { session_id: id, message }
  return { organizationId, sessionId, name: `${id} ${toolName}`, toolName, ...times, targetInput }
}

/** Checks the times of a schedule and returns its columns. Throws `invalid`. */
function timesOf(wanted: NewSessionSchedule) {
  const { timezone } = wanted
  if ('cron' in wanted) {
    parseCron(wanted.cron)
    return { cronExpression: wanted.cron, timezone, isOneOff: false }
  }
  const now = new Date()
  const cronExpression = cronOfTime(parseTime(wanted.at, timezone, now))
  // It is launched even if its time passes before the insert.
  return { cronExpression, timezone: 'UTC', isOneOff: true, launchedUntil: now }
}

/** Inserts a schedule. Throws `conflict` for a taken name, and beyond a quota. */
async function insertWithin(deps: Deps, tx: Prisma.TransactionClient, row: Fields & { id: string }): Promise<void> {
  const { organizationId, sessionId, toolName } = row
  await lockOrganization(tx, organizationId)
  const made = { organizationId, sessionId, deletedAt: null }
  if ((await tx.schedule.count({ where: { ...made, toolName } })) > 0)
    throw conflict(`The session has a schedule "${toolName}" already; delete it first, or take another name`)
  if ((await tx.schedule.count({ where: { ...made, toolName: { not: null } } })) >= MAX_PER_SESSION)
    throw quotaExceeded(`A session has at most ${MAX_PER_SESSION} schedules that its agent has made; delete one first`)
  const most = Math.ceil(deps.quotas.schedules.maxCount / 2)
  if ((await tx.schedule.count({ where: { organizationId, deletedAt: null, toolName: { not: null } } })) >= most)
    throw quotaExceeded(
      `The agents of the organization have made ${most} schedules, which is the limit; delete one first`,
    )
  const target = { targetType: 'workflow', targetName: 'session_message' }
  await insertSchedule(tx, deps, { ...row, ...target, catchUpMissed: true, maxCatchUp: 1 })
}

type Claim = { outcome: 'repeated'; effect: unknown } | { outcome: 'turn_ended' | 'fenced' | 'session_gone' }

/**
 * Makes a change once per call: in a transaction with its effect, which a repeated call returns. Throws `WriterLost`.
 */
function changeOnce<Effect extends Prisma.InputJsonObject>(
  { db }: Deps,
  { organizationId, sessionId, writer, signal }: CallScope,
  change: (tx: Prisma.TransactionClient) => Promise<Effect>,
): Promise<Effect> {
  const { turnId, step, fence } = writer
  const once = () =>
    db.$transaction(
      async (tx): Promise<Effect> => {
        const [claimed] = await tx.$queryRaw<{ refusal: Claim | null }[]>`
          SELECT claim_session_write(
            ${organizationId}::uuid, ${sessionId}::uuid, ${turnId}::uuid, ${step}, ${fence}::bigint
          ) AS refusal`
        const refusal = claimed?.refusal
        // Stored below, by an earlier attempt of the same call.
        if (refusal?.outcome === 'repeated') return refusal.effect as Effect
        if (refusal != null) throw new WriterLost(refusal.outcome)
        const effect = await change(tx)
        const stored = await tx.$executeRaw`
          UPDATE turn_steps SET effect = ${JSON.stringify(effect)}::jsonb
          WHERE turn_id = ${turnId}::uuid AND step = ${step} AND NOT is_call_completed(turn_id, step)`
        if (stored === 0) throw new WriterLost('fenced')
        return effect
      },
      { timeout: TIMEOUT_MS, maxWait: MAX_WAIT_MS },
    )
  return waitForLocks(once, 'The schedules of the organization are', signal)
}

async function present(deps: Deps, rows: Schedule[]): Promise<SessionSchedule[]> {
  const next = await readNextTimes(deps, rows)
  return rows.map((row) => {
    // Written by `fieldsOf`.
    const { message } = row.targetInput as { message: string }
    return { ...shown(row, message), next_run: next.get(row.id)?.[0]?.toISOString() ?? null }
  })
}

const shown = (
  row: Pick<Schedule, 'toolName' | 'cronExpression' | 'timezone' | 'isOneOff' | 'enabled'>,
  message: string,
) => ({
  name: row.toolName ?? '',
  message: message.length > SHOWN_CHARACTERS ? `${message.slice(0, SHOWN_CHARACTERS).toWellFormed()}…` : message,
  ...(row.isOneOff ? { at: timeOfCron(row.cronExpression).toISOString() } : { cron: row.cronExpression }),
  timezone: row.timezone,
  enabled: row.enabled,
})
