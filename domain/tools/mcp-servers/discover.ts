import { storableJson, storableText } from '../../../lib/postgres-text.ts'
import { sleep } from '../../../lib/sleep.ts'
import { cutAt } from '../../../lib/truncate.ts'
import { warnRarely } from '../../../lib/warn-rarely.ts'
import { Prisma, type McpServer as ServerRow } from '../../../prisma/generated/client.ts'
import { DomainError } from '../../kit/errors.ts'
import { toId } from '../../kit/ids.ts'
import { SecretRefused } from '../../kit/organization-secrets/resolve.ts'
import { UnreadableSecret } from '../../kit/secrets.ts'
import { redactText } from '../call-secrets/redact-text.ts'
import { checkSchemas } from '../capabilities/arguments/check.ts'
import type { Deps } from '../deps.ts'
import { type Discovered, type ListedTool, type McpEndpoint, McpFailure } from '../mcp/protocol/client.ts'
import { isWithinDepth } from '../mcp/protocol/json-size.ts'
import { SignInFailure } from '../mcp/sign-in/flow.ts'
import { damagedCredentials, isDamaged } from './credentials.ts'
import { endpointForListing } from './endpoint.ts'
import { lockServer } from './lock.ts'
import { toolNameOf } from './tool-names.ts'
import {
  acceptedOf,
  areEqual,
  type Fingerprints,
  fingerprintOf,
  fingerprintsOf,
  type StoredTool,
  type StoredTools,
  toolsOf,
} from './tools.ts'

/** Lifetime of a list: the server's value within bounds. Servers without a preference may send 0. */
const TTL_MS = 3_600_000
const MIN_TTL_MS = 10_000
const MAX_TTL_MS = 24 * 3_600_000
/** Delay of the next attempt after a failure. */
const RETRY_AFTER_MS = 60_000

const MAX_SCHEMA_LEVELS = 100
const MAX_LEFT_OUT = 100
const MAX_SENTENCE = 500
/** Number of tools that an event names as added, changed or removed. */
const MAX_NAMED = 100

const UNEXPECTED = 'The tools could not be read because of an error in the service'

/** Reports whether the tools of a server must be read again. */
export const isStale = ({ status, toolsExpireAt }: ServerRow): boolean =>
  status === 'active' && (toolsExpireAt === null || toolsExpireAt.getTime() <= Date.now())

/**
 * Reads the tools of a server again and stores them, or the reason for the failure. Resolves with true if anything was
 * stored. Never rejects: other errors are logged.
 */
export async function refreshTools(deps: Deps, row: ServerRow): Promise<boolean> {
  try {
    return await deps.mcpDiscoveries.run(row, (signal) => discover(deps, row, signal))
  } catch (error) {
    warnRarely(deps.log, { err: error, server: toId('mcp', row.id) }, 'tools of an MCP server not read')
    return false
  }
}

/**
 * Refreshes the tools for a turn, which waits only briefly: a longer discovery continues for the next turn. Throws the
 * signal's reason.
 */
export async function refreshSoon(deps: Deps, row: ServerRow, signal: AbortSignal): Promise<boolean> {
  const isKnown = row.toolsDiscoveredAt !== null || row.toolsError !== null
  const patienceMs = deps.mcpDiscoveries.patienceMs(row, isKnown)
  const over = new AbortController()
  const late = sleep(patienceMs, AbortSignal.any([signal, over.signal])).then(() => false)
  const isStored = await Promise.race([refreshTools(deps, row), late])
  over.abort()
  signal.throwIfAborted()
  return isStored
}

/** Marks the tools as expired, after the server has reported a change. Never rejects. */
export async function expireTools(deps: Deps, { organizationId, id, revision }: ServerRow): Promise<void> {
  try {
    const where = { organizationId, id, revision }
    await deps.db.mcpServer.updateMany({ where, data: { toolsExpireAt: new Date() } })
  } catch (error) {
    warnRarely(deps.log, { err: error, server: toId('mcp', id) }, 'change of tools of an MCP server not recorded')
  }
}

async function discover(deps: Deps, row: ServerRow, signal: AbortSignal): Promise<boolean> {
  let endpoint: McpEndpoint | undefined
  let found: Discovered
  let tools: StoredTools
  try {
    endpoint = await endpointForListing(deps, row, signal)
    found = await deps.mcp.discover(endpoint, signal)
    tools = await usableTools(deps, row, found)
  } catch (error) {
    signal.throwIfAborted()
    return storeFailure(deps, row, sentenceOf(deps, row, error, endpoint))
  }
  signal.throwIfAborted()
  return storeTools(deps, row, found, tools)
}

/** Errors whose sentences people may read. */
const KNOWN = [McpFailure, DomainError, SecretRefused, SignInFailure]

/** Returns a sentence for an administrator without secrets. Throws errors that another attempt or process may not have. */
function sentenceOf(deps: Deps, row: ServerRow, error: unknown, endpoint: McpEndpoint | undefined): string {
  if (isDamaged(error)) return damagedCredentials(row.name)
  if (error instanceof UnreadableSecret || deps.unavailability(error) !== undefined) throw error
  if (!(error instanceof Error && KNOWN.some((known) => error instanceof known))) {
    deps.log.error({ err: error, server: toId('mcp', row.id) }, 'tools of an MCP server not read')
    return UNEXPECTED
  }
  const { apiKey, headers = {}, secrets } = endpoint ?? {}
  const sentence = redactText(error.message, { apiKey, values: Object.values(headers), secrets })
  return storableText(cutAt(sentence, MAX_SENTENCE))
}

/** Removes tools that models cannot use: their names are taken, or their schemas do not compile. */
async function usableTools(deps: Deps, row: ServerRow, found: Discovered): Promise<StoredTools> {
  const leftOut = [...found.leftOut]
  const candidates: ListedTool[] = []
  const names = new Set<string>()
  for (const tool of storableJson(found.tools)) {
    if (names.has(tool.name)) leftOut.push({ name: tool.name, reason: 'the server lists two tools of this name' })
    else if (!isWithinDepth(tool.inputSchema, MAX_SCHEMA_LEVELS)) {
      leftOut.push({ name: tool.name, reason: `its parameters have more than ${MAX_SCHEMA_LEVELS} levels` })
    } else candidates.push(tool)
    names.add(tool.name)
  }
  const schemas = candidates.map(({ inputSchema }) => inputSchema)
  const problems = await checkSchemas(deps.threads.schemas, schemas, await deps.owners.ownerOf(row.organizationId))
  const tools = candidates.filter((tool, position) => {
    const problem = problems[position]
    if (problem !== undefined) leftOut.push({ name: tool.name, reason: `its parameters: ${problem}` })
    return problem === undefined
  })
  return {
    tools: tools.map((tool) => ({ ...tool, fingerprint: fingerprintOf(tool) })),
    ...(found.instructions !== undefined && { instructions: storableText(found.instructions) }),
    leftOut: leftOut.slice(0, MAX_LEFT_OUT).map(({ name, reason }) => ({ name, reason: cutAt(reason, MAX_SENTENCE) })),
  }
}

/** Stores a list, unless the server was changed meanwhile. The first list of a server is accepted automatically. */
const storeTools = (deps: Deps, row: ServerRow, found: Discovered, tools: StoredTools): Promise<boolean> =>
  update(
    deps,
    row,
    (locked) => {
      const now = Date.now()
      const fingerprints = fingerprintsOf(tools.tools)
      const accepted = acceptedOf(locked)
      const column = storableJson(tools)
      const ttlMs = Math.min(Math.max(found.ttlMs || TTL_MS, MIN_TTL_MS), MAX_TTL_MS)
      return {
        // Prisma's JSON type lacks `undefined`, which it omits.
        tools: column as unknown as Prisma.InputJsonObject,
        toolsBytes: Buffer.byteLength(JSON.stringify(column)),
        acceptedTools: [...(accepted ?? fingerprints)],
        protocol: found.protocol == null ? Prisma.DbNull : storableJson(found.protocol),
        toolsDiscoveredAt: new Date(now),
        // Keeps an expiry that was set meanwhile: it announces a change that this list may not have.
        ...(isSame(locked.toolsExpireAt, row.toolsExpireAt) && { toolsExpireAt: new Date(now + ttlMs) }),
        toolsChangedAt: changedAt(locked, fingerprints, now),
        toolsError: null,
      }
    },
    tools.tools,
  )

const isSame = (one: Date | null, other: Date | null): boolean => one?.getTime() === other?.getTime()

/** Returns the time since which the tools differ from the accepted ones. Each new list gets a new time. */
function changedAt(row: ServerRow, fingerprints: Fingerprints, now: number): Date | null {
  if (areEqual(fingerprints, acceptedOf(row) ?? fingerprints)) return null
  const before = row.toolsChangedAt
  const isAsBefore = areEqual(fingerprints, fingerprintsOf(toolsOf(row)?.tools ?? []))
  if (before !== null && isAsBefore) return before
  return new Date(Math.max(now, (before?.getTime() ?? 0) + 1))
}

/** Tells the organization that a server has other tools than in its previous list. */
async function noteChangedTools(tx: Prisma.TransactionClient, row: ServerRow, tools: StoredTool[]): Promise<void> {
  const before = toolsOf(row)
  if (before === undefined) return
  const [old, now] = [fingerprintsOf(before.tools), fingerprintsOf(tools)]
  if (areEqual(old, now)) return
  const names = (some: Fingerprints, isWanted: (name: string) => boolean) =>
    [...some.keys()]
      .filter(isWanted)
      .slice(0, MAX_NAMED)
      .map((name) => toolNameOf(row.slug, name))
  const data = {
    mcp_server: { id: toId('mcp', row.id), name: row.name },
    added: names(now, (name) => !old.has(name)),
    changed: names(now, (name) => old.has(name) && old.get(name) !== now.get(name)),
    removed: names(old, (name) => !now.has(name)),
  }
  await tx.$executeRaw`
    SELECT note_organization_event(
      ${row.organizationId}::uuid, 'tools.changed', NULL, NULL, NULL, ${JSON.stringify(data)}::jsonb
    )`
}

/** Stores the reason why the tools could not be read. Keeps the previous list. */
const storeFailure = (deps: Deps, row: ServerRow, sentence: string): Promise<boolean> =>
  update(deps, row, () => ({ toolsError: sentence, toolsExpireAt: new Date(Date.now() + RETRY_AFTER_MS) }))

/** Changes a server's row, unless its address or credentials have changed meanwhile. */
const update = (
  deps: Deps,
  row: ServerRow,
  changesOf: (locked: ServerRow) => Prisma.McpServerUpdateInput,
  tools?: StoredTool[],
): Promise<boolean> =>
  deps.db.$transaction(async (tx) => {
    const locked = await lockServer(tx, row)
    if (locked === null || locked.revision !== row.revision) return false
    const where = { organizationId_id: { organizationId: row.organizationId, id: row.id } }
    await tx.mcpServer.update({ where, data: changesOf(locked) })
    if (tools !== undefined) await noteChangedTools(tx, locked, tools)
    return true
  })
