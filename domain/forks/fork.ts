import { type ForkedSession, type ForkSessionRequest, MAX_TREE } from '../../contract/forks.ts'
import type { SessionId } from '../../contract/kit/ids.ts'
import { type InputContentPart, StoredControls } from '../../contract/messages.ts'
import type { Prisma, Session as SessionRow } from '../../prisma/generated/client.ts'
import { checkVersion, requireModel } from '../agents/check.ts'
import { checkOutputSchema } from '../agents/output-schema.ts'
import type { Deps } from '../deps.ts'
import { LOCKED_IDLE_MS } from '../events/log/transaction.ts'
import type { Actor } from '../kit/actor.ts'
import { createOnce } from '../kit/create-once.ts'
import { invalid, noSession, notFound, quotaExceeded } from '../kit/errors.ts'
import type { CreationAttempt } from '../kit/idempotency-keys.ts'
import { asUuid, newUuid } from '../kit/ids.ts'
import { requireSession } from '../kit/session-scope.ts'
import { waitForLocks } from '../kit/wait-for-locks.ts'
import { checkParts } from '../messages/check-parts.ts'
import { createMessage } from '../messages/create.ts'
import type { StoredFork } from '../sessions/present.ts'
import { getSession } from '../sessions/read.ts'
import { copyData, insertData } from './copy-data.ts'
import { copyHistory, copyTurns } from './copy-history.ts'
import { copySecrets } from './copy-secrets.ts'
import { type ForkPlace, placeFork } from './place.ts'

const TIMEOUT_MS = 30_000
const MAX_WAIT_MS = 5_000

/** A fork that has been committed. Its message may not be posted yet. */
type Made = { id: string; fork: StoredFork }

/**
 * Makes a session with the history of another up to a turn, in one transaction, and posts its message, if there is one.
 * A repeated request goes on where an earlier run was interrupted. Throws `not_found`, `invalid` for an `at` that the
 * session has not, and for what `createMessage` refuses, and `conflict` while a turn is unfinished that would be copied.
 */
export async function forkSession(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  input: ForkSessionRequest,
  attempt: CreationAttempt,
): Promise<ForkedSession> {
  const { id, fork } = await createOnce(attempt, {
    find: (uuid) => findFork(deps, actor, sessionId, uuid),
    insert: (uuid) => insertFork(deps, actor, sessionId, input, uuid),
  })
  const forkId = asUuid<'session'>(id)
  const message = await postMessage(deps, actor, { sessionId, forkId, fork }, input)
  return { session: await getSession(deps, actor, forkId), message }
}

async function findFork(deps: Deps, actor: Actor, forkedFromId: string, id: string): Promise<Made | undefined> {
  const where = { id, forkedFromId, organizationId: actor.organizationId }
  const row = await deps.db.session.findFirst({ where, select: { fork: true } })
  // Written by insertFork.
  return row === null ? undefined : { id, fork: row.fork as StoredFork }
}

type MessageToPost = {
  message: { content: InputContentPart[] }
  controls: ForkSessionRequest['controls']
  output_schema: ForkSessionRequest['output_schema']
  metadata?: Record<string, unknown> | undefined
  tags?: string[] | undefined
}

/** Returns the message that a fork posts: the message that the turn `replaced` answers, with what the request changes. */
async function messageOf(
  deps: Deps,
  sessionId: string,
  { message, controls, output_schema }: ForkSessionRequest,
  replaced: string | null | undefined,
): Promise<MessageToPost | undefined> {
  if (!replaced) return undefined
  const turn = await deps.db.turn.findFirst({ where: { id: replaced, sessionId }, select: { outputSchema: true } })
  const event = await deps.db.event.findFirst({
    where: { sessionId, turnId: replaced, type: 'input.message', step: '' },
  })
  if (event === null || turn === null) throw notFound('Message')
  if ('compaction' in (event.data as object)) throw invalid('at: is a compaction, which cannot be edited or repeated')
  // Validated by the contract when they were posted.
  const stored = (event.data as { message: MessageToPost['message'] & Omit<MessageToPost, 'message'> }).message
  const settings = {
    controls: controls ?? StoredControls.nullish().parse(stored.controls),
    output_schema: output_schema ?? (turn.outputSchema as MessageToPost['output_schema']),
  }
  if (message) return { message, ...settings }
  return { message: { content: stored.content }, ...settings, metadata: stored.metadata, tags: stored.tags }
}

async function postMessage(
  deps: Deps,
  actor: Actor,
  { sessionId, forkId, fork }: { sessionId: string; forkId: SessionId; fork: StoredFork },
  input: ForkSessionRequest,
): Promise<ForkedSession['message']> {
  if (fork.posts === null) return null
  const message = await messageOf(deps, sessionId, input, fork.replaced)
  if (message === undefined) return null
  return (await createMessage(deps, actor, forkId, message, { uuid: fork.posts })).message
}

/** Inserts a fork with all that is copied, unless another run of the request has. Throws as `forkSession` does. */
async function insertFork(
  deps: Deps,
  actor: Actor,
  sessionId: SessionId,
  input: ForkSessionRequest,
  id: string,
): Promise<Made | undefined> {
  await requireSession(deps, actor, sessionId)
  const place = await placeFork(deps, actor, sessionId, input)
  const posted = await messageOf(deps, sessionId, input, place.replaced?.id)
  if (posted === undefined && input.controls) throw invalid('controls: need message or again')
  if (posted === undefined && input.output_schema) throw invalid('output_schema: needs message or again')
  if (posted !== undefined) checkParts(posted.message.content, 'message.content')
  await requireModel(deps, actor, posted?.controls?.model_id, 'controls.model_id')
  await checkOutputSchema(deps, actor, posted?.output_schema)
  const posts = posted === undefined ? null : newUuid()
  const make = () =>
    deps.db.$transaction((db) => insertRows(deps, db, actor, { sessionId, id, place, posts, input }), {
      timeout: TIMEOUT_MS,
      maxWait: MAX_WAIT_MS,
    })
  return waitForLocks(make, 'The session and its data are')
}

type Wanted = { sessionId: string; id: string; place: ForkPlace; posts: string | null; input: ForkSessionRequest }

/**
 * Copies first what refers to no row of the fork: its row in `sessions` is counted in rows that other new sessions of the
 * organization are counted in, too, and which are locked from then on.
 */
async function insertRows(
  deps: Deps,
  db: Prisma.TransactionClient,
  actor: Actor,
  { sessionId, id, place, posts, input }: Wanted,
): Promise<Made | undefined> {
  const { organizationId } = actor
  await db.$queryRaw`
    SELECT set_config('lock_timeout', '1s', true), set_config('idle_in_transaction_session_timeout', ${`${LOCKED_IDLE_MS}`}, true)`
  // Keeps the session from being deleted, and not from going on.
  await db.$queryRaw`SELECT 1 FROM sessions WHERE id = ${sessionId}::uuid FOR KEY SHARE`
  const source = await db.session.findFirst({ where: { id: sessionId, organizationId } })
  if (source === null) throw noSession()
  await requireVersion(deps, actor, source, input)
  const treeId = source.treeId ?? source.id
  await lockTree(db, treeId)
  if ((await db.session.count({ where: { id } })) > 0) return undefined
  await requireRoom(db, organizationId, treeId)
  const asOf = stampOf(source, place)
  const fork: StoredFork = {
    turn: place.last?.id ?? null,
    replaced: place.replaced?.id ?? null,
    posts,
    dataAsOf: asOf === undefined ? 'now' : 'snapshot',
  }
  const history = await copyHistoryTo(db, source, { id, place, withSecrets: input.secrets === true })
  const sequence = place.replaced?.inputSequence ?? history.sessionFields.lastSequence
  const settings = await settingsThen(db, source, place, sequence, input)
  const data = await copyData(db, { from: source.id, to: id, asOf })
  if (input.secrets) await copySecrets(deps, db, { from: source.id, to: id, turns: history.turns })
  const origin = { id, organizationId, forkedFromId: source.id, treeId, fork }
  await db.session.create({
    data: { ...origin, ...settings, ...snapshotsOf(source, place), ...history.sessionFields },
    select: { id: true },
  })
  await copySettings(db, { from: source.id, to: id, sequence })
  await copyTurns(db, id, history.turns)
  await insertData(db, id, data)
  return { id, fork }
}

/** One fork of a tree is made at a time. */
const lockTree = (db: Prisma.TransactionClient, treeId: string) =>
  db.$queryRaw`SELECT 1 AS one FROM pg_advisory_xact_lock(hashtextextended(${`tree ${treeId}`}, 0))`

async function requireRoom(db: Prisma.TransactionClient, organizationId: string, treeId: string): Promise<void> {
  if ((await db.session.count({ where: { organizationId, treeId } })) < MAX_TREE - 1) return
  throw quotaExceeded(`A session and all forks that go back to it are at most ${MAX_TREE}; delete some first`)
}

async function requireVersion(
  deps: Deps,
  actor: Actor,
  { agentId, draftPrompt }: SessionRow,
  { agent_version }: ForkSessionRequest,
): Promise<void> {
  if (!agent_version) return
  if (agentId === null) throw invalid('agent_version: the session has no agent')
  if (draftPrompt !== null)
    throw invalid('agent_version: the fork runs the draft_prompt of the session instead of a version')
  await checkVersion(deps, actor, agentId, agent_version)
}

/** Returns the stamp at which the data is taken; undefined when there is no snapshot of it. */
function stampOf({ snapshotsSince }: SessionRow, { last, replaced }: ForkPlace): bigint | undefined {
  if (snapshotsSince === null || (!last && !replaced)) return undefined
  const stamp = replaced ? 2n * BigInt(replaced.inputSequence) : 2n * BigInt(last?.inputSequence ?? 0) + 1n
  return stamp < snapshotsSince ? undefined : stamp
}

/** A fork of a session with snapshots keeps its own, from where it begins. */
const snapshotsOf = ({ snapshotsSince }: SessionRow, { last }: ForkPlace) => ({
  snapshotsSince: snapshotsSince === null ? null : 2n * BigInt(last?.inputSequence ?? 0) + (last ? 1n : 0n),
})

/** Returns the settings that the session had at a sequence. The version of the agent is the turn's. */
async function settingsThen(
  db: Prisma.TransactionClient,
  source: SessionRow,
  { last, replaced }: ForkPlace,
  sequence: number,
  { agent_version, title }: ForkSessionRequest,
) {
  const then = await db.sessionSettings.findFirst({
    where: { sessionId: source.id, until: { gte: sequence } },
    orderBy: { until: 'asc' },
  })
  const { modelId, capabilities, tools } = then ?? source
  const ran = (replaced ?? last)?.agentVersion ?? (then ?? source).agentVersion
  return {
    agentId: source.agentId,
    agentVersion: agent_version === 0 ? null : (agent_version ?? ran),
    harnessId: source.harnessId,
    draftPrompt: source.draftPrompt,
    modelId,
    title: title ?? source.title,
    tags: source.tags,
    // Validated by the contract when they were written.
    capabilities: capabilities as Prisma.InputJsonValue,
    tools: tools as Prisma.InputJsonValue,
  }
}

/** Copies the settings before a sequence, for forks of the fork. */
const copySettings = (
  db: Prisma.TransactionClient,
  { from, to, sequence }: { from: string; to: string; sequence: number },
) =>
  db.$executeRaw`
    INSERT INTO session_settings (session_id, until, agent_version, model_id, capabilities, tools)
    SELECT ${to}::uuid, until, agent_version, model_id, capabilities, tools FROM session_settings
    WHERE session_id = ${from}::uuid AND until < ${sequence}`

/** Returns the turns to copy, and what the row of the fork says of them. */
async function copyHistoryTo(
  db: Prisma.TransactionClient,
  source: SessionRow,
  { id, place: { last }, withSecrets }: { id: string; place: ForkPlace; withSecrets: boolean },
) {
  if (last === null) return { turns: { from: [], to: [] }, sessionFields: { lastSequence: 0 } }
  const { turns, lastSequence, outputPreview } = await copyHistory(db, {
    ...{ from: source.id, to: id, upTo: last.inputSequence, withSecrets },
  })
  const { preview, startedAt } = source
  const ended = { status: 'idle', lastTurnStatus: last.status, lastSequence, finishedAt: last.finishedAt } as const
  return { turns, sessionFields: { ...ended, preview, startedAt, outputPreview } }
}
