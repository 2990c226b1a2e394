import { z } from 'zod'

const seconds = (fallback: number) => z.coerce.number().positive().default(fallback)
const text = (fallback: string) => z.string().min(1).default(fallback)
const optionalText = z.string().min(1).optional()

/** Defaults point at what `npm start` and `npm run services` bring up. */
const Environment = z.object({
  DATABASE_URL: text('postgres://postgres:postgres@127.0.0.1:9301/agent_sessions'),
  DATABASE_POOL_SIZE: z.coerce.number().int().min(2).max(500).default(20),
  REDIS_URL: text('redis://127.0.0.1:9302'),
  REDIS_PREFIX: text('agent-sessions'),
  TEMPORAL_ADDRESS: text('127.0.0.1:9303'),
  TEMPORAL_NAMESPACE: text('default'),
  TEMPORAL_TASK_QUEUE: text('agent-sessions'),
  WORKFLOW_BUNDLE: optionalText,
  HOST: text('0.0.0.0'),
  PORT: z.coerce.number().int().min(0).max(65535).default(9300),
  API_PREFIX: z
    .string()
    .default('')
    .transform((prefix) => prefix.replace(/\/+$/, ''))
    .refine((prefix) => prefix === '' || /^(\/[A-Za-z0-9._~-]+)+$/.test(prefix), {
      error: 'must be a path such as /service, or empty',
    }),
  CORS_ALLOWED_ORIGINS: z
    .string()
    .default('')
    .transform((origins) =>
      origins
        .split(',')
        .map((origin) => origin.trim())
        .filter(Boolean),
    ),
  AUTH_MODE: z.enum(['none'], { error: 'must be none: the modes admin and full are not there yet' }).default('none'),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  SSE_REALTIME_CYCLE_SECS: seconds(300),
  SSE_MONITORING_CYCLE_SECS: seconds(600),
  SSE_HEARTBEAT_INTERVAL_SECS: seconds(30),
  SSE_MAX_STREAMS_PER_ORGANIZATION: z.coerce.number().int().min(1).max(10_000).default(1000),
  LLM_IDLE_TIMEOUT_SECS: seconds(120),
  MAX_TURN_ITERATIONS: z.coerce.number().int().min(1).max(1000).default(100),
  /** In seconds. */
  CLIENT_TOOL_TIMEOUT: seconds(24 * 60 * 60),
  DELTA_RETENTION_SECS: seconds(60 * 60),
  IDEMPOTENCY_KEY_RETENTION_SECS: seconds(24 * 60 * 60),
  ALLOW_PRIVATE_NETWORK: z
    .enum(['true', 'false'])
    .default('false')
    .transform((value) => value === 'true'),
  DEFAULT_OPENAI_API_KEY: optionalText,
  DEFAULT_OPENAI_BASE_URL: z.url().optional(),
  DEFAULT_OPENAI_MODEL: optionalText,
})

export type Config = z.infer<typeof Environment>

/** A start that cannot work, told in one sentence for each variable. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/** Reads the environment; an empty variable counts as absent. Throws ConfigError naming every variable that is wrong. */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const parsed = Environment.safeParse(given)
  if (parsed.success) return parsed.data
  throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'))
}
