import type { Logger } from 'pino'
import { MAX_ANSWER_CHARACTERS } from '../../domain/agents/turn-caps.ts'
import { createConversationCache } from '../../domain/conversation/conversation-cache.ts'
import { createImageCache } from '../../domain/conversation/image-cache.ts'
import { createImageLoads } from '../../domain/conversation/load-image.ts'
import type { Deps, Readiness } from '../../domain/deps.ts'
import { createEventBroker } from '../../domain/events/live/event-broker.ts'
import { RELAY_STREAMS } from '../../domain/events/live/live-entry.ts'
import { createEventIds } from '../../domain/events/log/event-id.ts'
import { createGroupCommit } from '../../domain/events/log/group-commit.ts'
import { recordStatements } from '../../domain/events/log/record.ts'
import { reasonStep } from '../../domain/events/log/steps.ts'
import { setCell, toId } from '../../domain/kit/ids.ts'
import { createOwners } from '../../domain/kit/owners.ts'
import { createSessionMutex } from '../../domain/kit/session-mutex.ts'
import { NO_TRACING } from '../../domain/kit/tracing.ts'
import { createDocumentThreads } from '../../domain/kit/yaml/threads.ts'
import { createChildTurns } from '../../domain/messages/ask-agent.ts'
import { openSessionSchedules } from '../../domain/schedules/open-session-schedules.ts'
import { createSqliteRunner } from '../../domain/session-data/databases/sqlite-runner/create-sqlite-runner.ts'
import { createZipPlaces } from '../../domain/session-data/files/archive.ts'
import { createFileMutex } from '../../domain/session-data/files/change.ts'
import { createGrepSlots, createGrepThreads } from '../../domain/session-data/files/grep/threads.ts'
import { createFileReads } from '../../domain/session-data/files/open-session-files.ts'
import { createSchemaThreads } from '../../domain/tools/capabilities/arguments/threads.ts'
import { builtinCapabilities } from '../../domain/tools/capabilities/builtin/registry.ts'
import { createBashProcesses, fittingProcesses } from '../../domain/tools/capabilities/virtual-bash/processes.ts'
import { createWebPageThreads } from '../../domain/tools/capabilities/web-page/threads.ts'
import { createMcpClient } from '../../domain/tools/mcp/create-client.ts'
import { createDiscoveries } from '../../domain/tools/mcp-servers/discoveries.ts'
import { createMcpVisits } from '../../domain/tools/mcp-servers/reading.ts'
import { createArchiveSlots, createArchiveThreads } from '../../domain/tools/skills/archive/threads.ts'
import { raiseFence } from '../../domain/turns/run/attempt.ts'
import { createDeltaClock } from '../../domain/turns/run/delta-clock.ts'
import { reason } from '../../domain/turns/run/reason.ts'
import { createRunningAttempts } from '../../domain/turns/run/running-attempts.ts'
import { inLogContext } from '../../lib/log-context.ts'
import type { GuardOptions } from '../../lib/outgoing/guard.ts'
import type { PrismaClient } from '../../prisma/generated/client.ts'
import type { Config } from '../config.ts'
import type { ProcessMetrics } from '../metrics/metrics.ts'
import { checkSchema } from '../postgres/check-schema.ts'
import { type PostgresSettings, settleTls } from '../postgres/connection.ts'
import { applyMigrations } from '../postgres/migrate.ts'
import { migrationSettings } from '../postgres/migration-settings.ts'
import { connectPostgres, type Postgres, sharedKey } from '../postgres/postgres.ts'
import { toConfigError } from '../postgres/start-failure.ts'
import { type RedisConnector, redisConnector } from '../redis.ts'
import type { KeyRing } from '../secrets/encryption-key.ts'
import { readKeyRing } from '../secrets/key-ring.ts'
import { createSecrets } from '../secrets/secrets.ts'
import { sealing } from '../temporal/payload-codec.ts'
import { connectTemporal, type Temporal } from '../temporal/temporal.ts'
import type { ProcessTracing } from '../tracing/tracing.ts'
import { unavailability } from '../unavailable.ts'
import { createAuth } from './auth.ts'
import { createModels } from './models.ts'
import { createReadiness } from './readiness.ts'
import { waitForPostgres } from './wait-for-postgres.ts'

/** Connections and dependencies of one process. */
export type Platform = {
  deps: Deps
  temporal: Temporal
  readiness: Readiness
  /** Undefined when METRICS_PORT is not set. */
  metrics: ProcessMetrics | undefined
  /** The way to Postgres, for connections besides the pool's. */
  database: PostgresSettings
  close(): Promise<void>
}

const DAY_MS = 86_400_000
const TOOL_CALL_LEASE_MS = 30_000
const CHECK_MS = 5000
const CHECK_WITHOUT_REDIS_MS = 500

/**
 * Applies migrations and connects. Waits for Postgres; Redis and Temporal may become available later. Rejects with the
 * signal's reason when `signal` aborts before Postgres is there, and with ConfigError when Postgres is not as the
 * settings say or a key of secrets is missing.
 */
export async function buildPlatform(
  config: Config,
  log: Logger,
  signal: AbortSignal = new AbortController().signal,
): Promise<Platform> {
  setCell(config.CELL)
  const connector = redisConnector(config)
  await waitForPostgres(() => prepareSchema(config, log), log, signal)
  const settled = await waitForPostgres(() => settleTls(config), log, signal)
  const { db, pool, imageChunks, fileStore, databaseStore, close: closePostgres } = connectPostgres(settled, log)
  const keys = await waitForPostgres(() => readKeys(config, db), log, signal).catch(async (error: unknown) => {
    await closePostgres()
    throw error
  })
  const redis = { client: connector.connect(log), prefix: config.REDIS_PREFIX }
  const temporal = connectTemporal(config, log)
  const metrics = config.METRICS_PORT === undefined ? undefined : await startMetrics(pool)
  const tracing = await startTracing(config, db, log)
  const events = buildEvents({ db, redis, log, metrics }, connector, keys.eventIds)
  const threads = {
    documents: createDocumentThreads(),
    schemas: createSchemaThreads(),
    pages: createWebPageThreads(),
    greps: createGrepThreads(),
    archives: createArchiveThreads(),
  }
  const owners = createOwners(db)
  const bash = createBashProcesses({
    maxProcesses: config.BASH_MAX_PROCESSES ?? fittingProcesses(),
    ownerOf: owners.ownerOf,
  })
  const outgoing = guardOf(config, keys.serviceId)
  const { models, close: closeModels } = createModels(config, outgoing)
  const sqliteRunner = createSqliteRunner()
  const mcp = createMcpClient({ ...outgoing, traceparent: tracing?.traceparent })
  const mcpDiscoveries = createDiscoveries(owners.ownerOf)
  const deps: Deps = {
    log,
    db,
    redis,
    events,
    threads,
    bash,
    auth: createAuth(config, keys.tokens, log),
    owners,
    metrics,
    tracing: tracing ?? NO_TRACING,
    secrets: createSecrets(keys.secrets),
    workflows: temporal,
    deltaClock: createDeltaClock(),
    attempts: createRunningAttempts({
      run: (turn, iteration, attempt) =>
        inLogContext({ turn: toId('turn', turn.turnId) }, () =>
          deps.tracing.apart(() => reason(deps, turn, iteration, attempt)),
        ),
      raise: (turn, iteration, fences) => raiseFence(deps, turn, reasonStep(iteration), fences),
      places: config.MAX_MODEL_CALLS,
    }),
    clock: temporal.clock,
    openSchedules: (scope) => openSessionSchedules(deps, scope),
    children: createChildTurns(() => deps),
    models,
    capabilities: builtinCapabilities,
    sealing,
    ownTaskQueue: config.TEMPORAL_TASK_QUEUE,
    conversations: createConversationCache(),
    images: createImageCache(),
    imageLoads: createImageLoads(),
    imageChunks,
    fileStore,
    fileMutex: createFileMutex(),
    fileReads: createFileReads(),
    zipPlaces: createZipPlaces(),
    databaseStore,
    sqliteRunner,
    mcp,
    mcpDiscoveries,
    mcpVisits: createMcpVisits(),
    apiUrl: `${config.AUTH_BASE_URL}${config.API_PREFIX}`,
    grepSlots: createGrepSlots(),
    archiveSlots: createArchiveSlots(),
    unavailability,
    outgoing,
    ...settingsOf(config),
  }
  return {
    deps,
    temporal,
    readiness: createReadiness(db, redis.client, temporal, signal),
    metrics,
    database: {
      DATABASE_URL: settled.DATABASE_URL,
      DATABASE_CA_FILE: settled.DATABASE_CA_FILE,
      DATABASE_POOLER: settled.DATABASE_POOLER,
    },
    close: async () => {
      // It reads turns that have just ended.
      await tracing?.close()
      bash.close()
      await events.broker.close()
      redis.client.disconnect()
      // They write to Postgres.
      await Promise.all([mcpDiscoveries.close(), mcp.close()])
      await Promise.allSettled([
        temporal.close(),
        closePostgres(),
        closeModels(),
        sqliteRunner.close(),
        ...Object.values(threads).map((pool) => pool.close()),
      ])
    },
  }
}

/** Loads what measures only where it is wanted. */
async function startMetrics(pool: Postgres['pool']): Promise<ProcessMetrics> {
  const { createMetrics } = await import('../metrics/metrics.ts')
  const names = builtinCapabilities.flatMap(({ tools }) => tools.map(({ name }) => name))
  const metrics = createMetrics(new Set(names))
  metrics.watch('postgres_total', () => pool.totalCount)
  metrics.watch('postgres_idle', () => pool.idleCount)
  metrics.watch('postgres_waiting', () => pool.waitingCount)
  return metrics
}

/** Loads what traces only where it is wanted. */
async function startTracing(config: Config, db: PrismaClient, log: Logger): Promise<ProcessTracing | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: hasContent } = config
  if (OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined
  const { createTracing } = await import('../tracing/tracing.ts')
  return createTracing({ settings: { ...config, OTEL_EXPORTER_OTLP_ENDPOINT }, hasContent, db, log })
}

function buildEvents(
  { db, redis, log, metrics }: Pick<Deps, 'db' | 'redis' | 'log' | 'metrics'>,
  connector: RedisConnector,
  idKey: Uint8Array,
): Deps['events'] {
  const broker = createEventBroker({
    ...redis,
    readers: connector.connectReaders(log, RELAY_STREAMS),
    db,
    log,
    checkMs: CHECK_MS,
    checkWithoutRedisMs: CHECK_WITHOUT_REDIS_MS,
    onLag: metrics?.relayed,
  })
  const groups = createGroupCommit(recordStatements(db, unavailability))
  return { ids: createEventIds(idKey), broker, mutex: createSessionMutex(), groups, lastContext: {} }
}

type Keys = { secrets: KeyRing; tokens: Uint8Array; eventIds: Uint8Array; serviceId: Uint8Array }

/** Reads the keys of secrets first: when one is missing, the process ends, and has written nothing. */
async function readKeys(config: Config, db: PrismaClient): Promise<Keys> {
  const secrets = await readKeyRing(config, db)
  const [tokens, eventIds, serviceId] = await Promise.all([
    sharedKey(db, 'tokens'),
    sharedKey(db, 'event_ids'),
    sharedKey(db, 'service_id'),
  ])
  return { secrets, tokens, eventIds, serviceId }
}

const guardOf = (config: Config, serviceId: Uint8Array): GuardOptions => ({
  allowPrivateNetwork: config.ALLOW_PRIVATE_NETWORK,
  allowedHosts: config.ALLOWED_PRIVATE_HOSTS,
  // The port of an API apart, if it is on this machine.
  ownPorts: new Set([config.PORT]),
  serviceId: Buffer.from(serviceId).toString('hex').slice(0, 32),
})

const settingsOf = (config: Config): Pick<Deps, 'limits' | 'quotas' | 'retention'> => ({
  limits: {
    maxTurnIterations: config.MAX_TURN_ITERATIONS,
    clientToolTimeoutMs: config.CLIENT_TOOL_TIMEOUT * 1000,
    toolCallLeaseMs: TOOL_CALL_LEASE_MS,
    modelIdleTimeoutMs: config.LLM_IDLE_TIMEOUT_SECS * 1000,
    maxModelCalls: config.MAX_MODEL_CALLS,
    modelCallMs: config.MAX_MODEL_CALL_SECONDS * 1000,
    maxRunningTurns: config.MAX_RUNNING_TURNS_PER_ORGANIZATION || undefined,
    maxAnswerCharacters: MAX_ANSWER_CHARACTERS,
    maxTurnMs: config.MAX_TURN_SECONDS * 1000,
    mayBeUnpriced: config.BUDGET_UNKNOWN_PRICES === 'allow',
    turnStalledMs: config.TURN_STALLED_SECS * 1000,
    maxToolCalls: config.MAX_TURN_TOOL_CALLS || undefined,
    maxOutputTokens: config.MAX_TURN_OUTPUT_TOKENS || undefined,
  },
  quotas: {
    llmProviders: config.LLM_MAX_PROVIDERS,
    llmModels: config.LLM_MAX_MODELS_PER_PROVIDER,
    skills: config.SKILLS_MAX_COUNT,
    mcpServers: config.MCP_MAX_SERVERS,
    webhooks: config.WEBHOOKS_MAX_COUNT,
    schedules: { maxCount: config.SCHEDULES_MAX_COUNT, maxRunning: config.SCHEDULE_EXECUTIONS_MAX_RUNNING },
    images: {
      maxBytes: config.IMAGE_MAX_BYTES,
      maxCount: config.IMAGE_MAX_COUNT,
      maxTotalBytes: config.IMAGE_MAX_TOTAL_BYTES,
    },
    files: {
      maxBytes: config.SESSION_FILE_MAX_BYTES,
      maxCount: config.SESSION_FILES_MAX_COUNT,
      maxTotalBytes: config.SESSION_FILES_MAX_TOTAL_BYTES,
    },
    storage: { maxCount: config.SESSION_STORAGE_MAX_COUNT, maxTotalBytes: config.SESSION_STORAGE_MAX_TOTAL_BYTES },
  },
  retention: {
    sessionsMs: config.SESSION_RETENTION_DAYS * DAY_MS,
    deltasMs: config.DELTA_RETENTION_SECS * 1000,
    idempotencyKeysMs: config.IDEMPOTENCY_KEY_RETENTION_SECS * 1000,
    executionsMs: config.SCHEDULE_EXECUTION_RETENTION_SECS * 1000,
    organizationEventsMs: config.ORGANIZATION_EVENT_RETENTION_SECS * 1000,
    deliveriesMs: config.WEBHOOK_DELIVERY_RETENTION_SECS * 1000,
    auditMs: config.AUDIT_RETENTION_DAYS * DAY_MS,
  },
})

/** Applies migrations unless another command does, and checks that the role of the service may use the result. */
async function prepareSchema(config: Config, log: Logger): Promise<void> {
  if (config.MIGRATE_ON_START) {
    const settings = migrationSettings(config)
    const applied = await applyMigrations(settings).catch((error: unknown) => {
      throw toConfigError(error, settings.variable) ?? error
    })
    if (applied.length > 0) log.info({ applied }, 'migrations applied')
  }
  await checkSchema(config)
}
