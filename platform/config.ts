import { z } from 'zod'
import { AuthMode, Password } from '../contract/auth.ts'
import { MAX_FILE_BYTES } from '../contract/files.ts'
import { MAX_IMAGE_BYTES } from '../contract/images.ts'
import { normalizeEmail } from '../lib/email.ts'
import { isLoopback } from '../lib/loopback.ts'
import { type AllowedHost, parseAllowedHost } from '../lib/outgoing/allowed-host.ts'
import { isKeyText } from './encryption-key.ts'

/** Seconds of a timer, which Node.js limits to 2^31 ms. */
const seconds = (fallback: number) => z.coerce.number().positive().max(2_000_000).default(fallback)
const longSeconds = (fallback: number) => z.coerce.number().positive().default(fallback)
const wholeSeconds = (fallback: number) =>
  z.coerce
    .number()
    .int()
    .min(1)
    .max(10 * 365 * 24 * 60 * 60)
    .default(fallback)
const text = (fallback: string) => z.string().min(1).default(fallback)
const optionalText = z.string().min(1).optional()
const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform((value) => value === 'true')
const commaSeparated = z
  .string()
  .default('')
  .transform((items) =>
    items
      .split(',')
      .map((item) => item.trim())
      .filter(Boolean),
  )
/** List of domains that must not be empty if it is set: an empty list would let everybody in. */
const domains = commaSeparated
  .transform((items) => items.map((item) => item.replace(/^@/, '').toLowerCase()))
  .pipe(z.array(z.string().regex(z.regexes.domain, { error: 'must be domains such as example.com' })).min(1))

const privateHosts = commaSeparated.transform((items, issues): AllowedHost[] => {
  const hosts = items.map((item) => parseAllowedHost(item.toLowerCase()))
  const wrong = items[hosts.indexOf(undefined)]
  if (wrong !== undefined) {
    const message = `must be names, addresses or CIDR blocks, such as ollama:11434, 10.0.0.0/8 or [fd00::1]:8080; ${wrong} is none`
    issues.addIssue({ code: 'custom', message })
  }
  return hosts.filter((host) => host !== undefined)
})

const MAKE_KEY = 'openssl rand -hex 32 makes one'
const encryptionKey = z
  .string()
  .refine(isKeyText, { error: `must be 32 bytes, as 64 hex digits or base64; ${MAKE_KEY}` })

/** Address that login secrets are sent to, so plain http is allowed only on this machine. */
const safeUrl = z.url({ protocol: /^https?$/ }).refine(isSafe, { error: 'must begin with https://, but for localhost' })

const plainUrl = z
  .url({ protocol: /^https?$/ })
  .refine((url) => /^https?:\/\/[^@?#]+$/.test(url), { error: 'must have no query, fragment or user' })

/** The environment variables. Defaults match what `npm start` and `npm run services` start. */
const Variables = z.object({
  DATABASE_URL: text('postgres://postgres:postgres@127.0.0.1:9301/agent_sessions'),
  DATABASE_POOL_SIZE: z.coerce.number().int().min(2).max(500).default(20),
  REDIS_URL: text('redis://127.0.0.1:9302'),
  REDIS_PREFIX: text('agent-sessions'),
  TEMPORAL_ADDRESS: text('127.0.0.1:9303'),
  TEMPORAL_NAMESPACE: text('default'),
  TEMPORAL_TASK_QUEUE: text('agent-sessions'),
  WORKFLOW_BUNDLE: optionalText,
  HOST: optionalText,
  PORT: z.coerce.number().int().min(0).max(65535).default(9300),
  API_PREFIX: z
    .string()
    .default('')
    .transform((prefix) => prefix.replace(/\/+$/, ''))
    .refine((prefix) => prefix === '' || /^(\/[A-Za-z0-9._~-]+)+$/.test(prefix), {
      error: 'must be a path such as /service, or empty',
    }),
  /** Whether the page for people is served. */
  CONSOLE: z.enum(['on', 'off']).default('on'),
  TEMPORAL_UI_URL: plainUrl.transform((url) => url.replace(/\/+$/, '')).optional(),
  CORS_ALLOWED_ORIGINS: commaSeparated,
  TRUSTED_PROXIES: z.coerce.number().int().min(0).max(20).default(0),
  AUTH_MODE: AuthMode.default('none'),
  AUTH_BASE_URL: plainUrl.default('http://localhost:9300/api').transform((url) => url.replace(/\/+$/, '')),
  AUTH_JWT_SECRET: optionalText,
  AUTH_JWT_ACCESS_TOKEN_LIFETIME: wholeSeconds(15 * 60),
  AUTH_JWT_REFRESH_TOKEN_LIFETIME: wholeSeconds(30 * 24 * 60 * 60),
  AUTH_ADMIN_EMAIL: z.string().transform(normalizeEmail).pipe(z.email()).optional(),
  AUTH_ADMIN_PASSWORD: Password.optional(),
  AUTH_DISABLE_PASSWORD: flag,
  AUTH_DISABLE_SIGNUP: flag,
  AUTH_IDPA_CLIENT_ID: optionalText,
  AUTH_IDPA_CLIENT_SECRET: optionalText,
  AUTH_IDPA_REDIRECT_URI: z.url({ protocol: /^https?$/ }).optional(),
  AUTH_IDPA_ALLOWED_DOMAINS: domains.optional(),
  AUTH_IDPA_ISSUER: safeUrl
    .refine((url) => !url.includes('/.well-known/'), { error: 'must be the issuer itself, without /.well-known/' })
    .default('https://accounts.google.com'),
  AUTH_IDPB_CLIENT_ID: optionalText,
  AUTH_IDPB_CLIENT_SECRET: optionalText,
  AUTH_IDPB_REDIRECT_URI: z.url({ protocol: /^https?$/ }).optional(),
  AUTH_IDPB_AUTHORIZE_URL: safeUrl.default('https://github.com/login/oauth/authorize'),
  AUTH_IDPB_TOKEN_URL: safeUrl.default('https://github.com/login/oauth/access_token'),
  AUTH_IDPB_USER_URL: safeUrl.default('https://api.github.com/user'),
  AUTH_IDPB_SCOPE: text('read:user user:email'),
  SECRETS_ENCRYPTION_KEY: encryptionKey.optional(),
  SECRETS_ENCRYPTION_KEY_PREVIOUS: commaSeparated.pipe(
    z.array(encryptionKey).max(10, { error: 'must be at most 10 keys' }),
  ),
  LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  SSE_REALTIME_CYCLE_SECS: seconds(300),
  SSE_MONITORING_CYCLE_SECS: seconds(600),
  SSE_HEARTBEAT_INTERVAL_SECS: seconds(30),
  SSE_MAX_STREAMS_PER_ORGANIZATION: z.coerce.number().int().min(1).max(10_000).default(1000),
  LLM_IDLE_TIMEOUT_SECS: seconds(120),
  /** A call that waits is an idle socket. Each may come to need an activity, so the worker has as many slots. */
  MAX_MODEL_CALLS: z.coerce.number().int().min(1).max(100_000).default(3000),
  /** Less than the time limit of the activity, so that the failure is counted and reported. */
  MAX_MODEL_CALL_SECONDS: z.coerce.number().int().min(1).max(1700).default(1500),
  MAX_TURN_SECONDS: longSeconds(24 * 60 * 60),
  MAX_TURN_ITERATIONS: z.coerce.number().int().min(1).max(1000).default(100),
  /** Timeout in seconds. */
  CLIENT_TOOL_TIMEOUT: longSeconds(24 * 60 * 60),
  DELTA_RETENTION_SECS: longSeconds(60 * 60),
  IDEMPOTENCY_KEY_RETENTION_SECS: longSeconds(24 * 60 * 60),
  SCHEDULE_EXECUTION_RETENTION_SECS: longSeconds(90 * 24 * 60 * 60),
  ALLOW_PRIVATE_NETWORK: flag,
  ALLOWED_PRIVATE_HOSTS: privateHosts,
  DEFAULT_OPENAI_API_KEY: optionalText,
  DEFAULT_OPENAI_BASE_URL: plainUrl.optional(),
  DEFAULT_OPENAI_MODEL: optionalText,
  DEFAULT_ANTHROPIC_API_KEY: optionalText,
  DEFAULT_ANTHROPIC_MODEL: optionalText,
  DEFAULT_GEMINI_API_KEY: optionalText,
  DEFAULT_GEMINI_MODEL: optionalText,
  LLM_MAX_PROVIDERS: z.coerce.number().int().min(0).max(1000).default(50),
  LLM_MAX_MODELS_PER_PROVIDER: z.coerce.number().int().min(0).max(100_000).default(5000),
  SKILLS_MAX_COUNT: z.coerce.number().int().min(0).max(100_000).default(1000),
  SCHEDULES_MAX_COUNT: z.coerce.number().int().min(0).max(100_000).default(1000),
  SCHEDULE_EXECUTIONS_MAX_RUNNING: z.coerce.number().int().min(1).max(10_000).default(20),
  BASH_MAX_PROCESSES: z.coerce.number().int().min(1).max(1000).optional(),
  MCP_MAX_SERVERS: z.coerce.number().int().min(0).max(1000).default(100),
  /** An image is decoded from memory, one at a time. */
  IMAGE_MAX_BYTES: z.coerce
    .number()
    .int()
    .min(1)
    .max(100 * 1024 * 1024)
    .default(MAX_IMAGE_BYTES),
  /** Counted with each upload. */
  IMAGE_MAX_COUNT: z.coerce.number().int().min(0).max(100_000).default(10_000),
  IMAGE_MAX_TOTAL_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(10 * 1024 ** 3),
  /** A file is sent as JSON, whose limit no configuration changes. */
  SESSION_FILE_MAX_BYTES: z.coerce.number().int().min(1).max(MAX_FILE_BYTES).default(MAX_FILE_BYTES),
  /** Bash lists all of them for each command. */
  SESSION_FILES_MAX_COUNT: z.coerce.number().int().min(0).max(100_000).default(20_000),
  SESSION_FILES_MAX_TOTAL_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(1024 ** 3),
  /** Of values, and of secrets. Each change adds up the sizes of all. */
  SESSION_STORAGE_MAX_COUNT: z.coerce.number().int().min(0).max(10_000).default(1000),
  SESSION_STORAGE_MAX_TOTAL_BYTES: z.coerce
    .number()
    .int()
    .min(0)
    .default(64 * 1024 ** 2),
})

/** Names of all variables that can be configured. */
export const configVariables: string[] = Object.keys(Variables.shape)

/** Without authentication the API listens on this machine alone, unless HOST is given. */
const listenHost = ({ HOST, AUTH_MODE }: z.infer<typeof Variables>): string =>
  HOST ?? (AUTH_MODE === 'none' ? '127.0.0.1' : '0.0.0.0')

/** The variables, checked for those that the authentication mode requires; each issue gives the reason. */
const Environment = Variables.superRefine((config, issues) => {
  const need = (variable: keyof typeof config, why: string) => {
    if (config[variable] === undefined)
      issues.addIssue({ code: 'custom', path: [variable], message: `is needed ${why}` })
  }
  if (config.AUTH_MODE === 'none') return
  need('AUTH_JWT_SECRET', `with AUTH_MODE=${config.AUTH_MODE}: it signs tokens; ${MAKE_KEY}`)
  if (config.AUTH_MODE === 'full')
    need('SECRETS_ENCRYPTION_KEY', `with AUTH_MODE=full: it encrypts stored secrets; ${MAKE_KEY}`)
  if (config.AUTH_MODE === 'admin' || config.AUTH_ADMIN_PASSWORD) need('AUTH_ADMIN_EMAIL', 'for the administrator')
  const hasPasswords = config.AUTH_MODE === 'admin' || !config.AUTH_DISABLE_PASSWORD
  if (config.AUTH_MODE === 'admin' || (config.AUTH_ADMIN_EMAIL && hasPasswords))
    need('AUTH_ADMIN_PASSWORD', 'for the administrator')
  for (const provider of ['IDPA', 'IDPB'] as const) {
    const [id, secret] = [`AUTH_${provider}_CLIENT_ID`, `AUTH_${provider}_CLIENT_SECRET`] as const
    if (config[id]) need(secret, `with ${id}`)
    if (config[secret]) need(id, `with ${secret}`)
  }
}).transform((config) => ({ ...config, HOST: listenHost(config) }))

export type Config = z.infer<typeof Environment>

/** What the console has to know, or undefined when it is off. */
export const consoleOptions = ({ CONSOLE, TEMPORAL_UI_URL, TEMPORAL_NAMESPACE }: Config) =>
  CONSOLE === 'off'
    ? undefined
    : { temporalUi: TEMPORAL_UI_URL ? { url: TEMPORAL_UI_URL, namespace: TEMPORAL_NAMESPACE } : undefined }

/** Error for an invalid environment, with one line for each variable. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

/**
 * Reads the environment; an empty variable counts as absent. Throws ConfigError naming every variable that
 * has a wrong form, or else every one that is missing.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const parsed = Environment.safeParse(given)
  if (parsed.success) return parsed.data
  throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'))
}

function isSafe(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || isLoopback(hostname)
}
