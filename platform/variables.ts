import { z } from 'zod'
import { AuthMode, Password } from '../contract/auth.ts'
import { MAX_FILE_BYTES } from '../contract/files.ts'
import { MAX_IMAGE_BYTES } from '../contract/images.ts'
import { normalizeEmail } from '../lib/email.ts'
import {
  commaSeparated,
  domains,
  encryptionKey,
  faces,
  flag,
  headerPairs,
  httpUrl,
  longSeconds,
  plainUrl,
  privateHosts,
  safeUrl,
  seconds,
  text,
  whole,
  wholeSeconds,
  withoutSlash,
} from './variable-kinds.ts'

const MiB = 1024 ** 2
const GiB = 1024 ** 3
const MINUTE_SECS = 60
const HOUR_SECS = 60 * MINUTE_SECS
const DAY_SECS = 24 * HOUR_SECS

const api = {
  HOST: text.optional().describe('Address on which the API listens. Default: 127.0.0.1 in mode none, else 0.0.0.0.'),
  PORT: whole(0, 65535).default(9300).describe('Port on which the API listens.'),
  API_PREFIX: z
    .string()
    .default('')
    .transform(withoutSlash)
    .refine((prefix) => prefix === '' || /^(\/[A-Za-z0-9._~-]+)+$/.test(prefix), {
      error: 'must be a path such as /service, or empty',
    })
    .describe('Path in front of every `/v1` route, such as `/agents`.'),
  TRUSTED_PROXIES: whole(0, 20)
    .default(0)
    .describe('Number of reverse proxies in front, whose `X-Forwarded-…` headers are trusted.'),
  CELL: whole(0, 255)
    .optional()
    .describe(
      'Number of this [cell](operations.md#regions-and-cells). New ids end with it, as two hexadecimal digits. Default: none.',
    ),
  CORS_ALLOWED_ORIGINS: commaSeparated.describe(
    'Comma-separated origins that browsers may call from, and write from with cookies. In mode none, writes from other ' +
      'sites are refused.',
  ),
  CONSOLE: z.enum(['on', 'off']).default('on').describe('`off` removes the [console](guides/console.md).'),
  FACES: faces.describe('Comma-separated [faces](faces/README.md), which serve clients of other protocols; or `none`.'),
  TEMPORAL_UI_URL: plainUrl
    .transform(withoutSlash)
    .optional()
    .describe('Address of the Temporal UI, to which the console links. Default: no links.'),
  RATE_LIMIT_PER_KEY_PER_MINUTE: whole(1, 1_000_000_000)
    .optional()
    .describe('Requests that an API key may send within a minute; then 429. Default: no limit.'),
  RATE_LIMIT_PER_ORGANIZATION_PER_MINUTE: whole(1, 1_000_000_000)
    .optional()
    .describe('Requests that may be sent within a minute in one organization, by logins and all keys together.'),
  LOG_ORGANIZATION: flag.describe("`true`: the log's line of a request has the id of the caller's organization."),
  METRICS_PORT: whole(0, 65535)
    .optional()
    .describe(
      'Port of `/metrics` for Prometheus, and of `/health`, `/health/started` and `/health/ready`. Default: none.',
    ),
  METRICS_HOST: text.default('0.0.0.0').describe('Address on which METRICS_PORT listens. It has no sign-in.'),
  LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least severe level that is logged, as JSON lines.'),
}

const traces = {
  OTEL_EXPORTER_OTLP_ENDPOINT: plainUrl
    .transform(withoutSlash)
    .optional()
    .describe(
      'Collector that gets [traces](operations.md#traces) by OTLP over HTTP, such as `http://collector:4318`. Default: none.',
    ),
  OTEL_EXPORTER_OTLP_HEADERS: headerPairs
    .optional()
    .describe('Headers for the collector, such as a key: `name=value,other=value`, percent-encoded.'),
  OTEL_EXPORTER_OTLP_PROTOCOL: z
    .enum(['http/protobuf', 'http/json'])
    .default('http/protobuf')
    .describe('Encoding of traces.'),
  OTEL_SERVICE_NAME: text.default('agent-session-service').describe('Name of the service in traces.'),
  OTEL_TRACES_SAMPLER: z
    .enum([
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ])
    .default('parentbased_always_on')
    .describe("Choice of traces. With `parentbased_`, a caller's `traceparent` decides for its own."),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('Share of traces that `traceidratio` chooses, from 0 to 1.'),
  OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: flag.describe(
    '`true`: traces have prompts, answers, and arguments and results of tools.',
  ),
}

const connections = {
  DATABASE_URL: text
    .default('postgres://postgres:postgres@127.0.0.1:9301/agent_sessions')
    .describe('Postgres 15 or later. `sslmode` and `sslrootcert` are as in libpq.'),
  DATABASE_CA_FILE: text
    .optional()
    .describe(
      "File with the authorities (PEM) that sign Postgres's certificate. Without `sslmode` it means `verify-full`. Default: Node's.",
    ),
  DATABASE_POOL_SIZE: whole(2, 500)
    .default(20)
    .describe('Connections of one process to Postgres; a worker has one more for its lease.'),
  DATABASE_POOLER: z
    .enum(['none', 'transaction'])
    .default('none')
    .describe('`transaction`: DATABASE_URL leads to a pooler in transaction mode, such as PgBouncer.'),
  MIGRATE_ON_START: z
    .enum(['true', 'false'])
    .default('true')
    .transform((value) => value === 'true')
    .describe('`false`: a process does not migrate the database, and starts only when `npm run migrate` has.'),
  DATABASE_MIGRATION_URL: text
    .optional()
    .describe('Address of the same database for migrations, with a role that owns the tables. Default: DATABASE_URL.'),
  REDIS_URL: text
    .default('redis://127.0.0.1:9302')
    .describe(
      'Redis 6.2 or later; `rediss://user:password@host:port` has TLS and a login. A cluster and Sentinel take several hosts: ' +
        '`redis://host:port,host:port`.',
    ),
  REDIS_CA_FILE: text
    .optional()
    .describe("File with the authorities (PEM) that sign Redis's certificate. Default: Node's."),
  REDIS_CLUSTER: flag.describe('`true`: Redis is a Redis Cluster, and `REDIS_URL` names some of its nodes.'),
  REDIS_SENTINEL_NAME: text
    .optional()
    .describe('Name of the primary that the Sentinels know. `REDIS_URL` then names the Sentinels.'),
  REDIS_SENTINEL_PASSWORD: text
    .optional()
    .describe('Password of the Sentinels; the login of `REDIS_URL` is for Redis itself.'),
  REDIS_PREFIX: text
    .default('agent-sessions')
    .describe('Prefix of every key in Redis, so that deployments can share a server.'),
  TEMPORAL_ADDRESS: text.default('127.0.0.1:9303').describe("Temporal's gRPC address."),
  TEMPORAL_NAMESPACE: text.default('default').describe('Namespace in Temporal.'),
  TEMPORAL_TLS: z
    .enum(['true', 'false'])
    .transform((value) => value === 'true')
    .optional()
    .describe('`true`: TLS to Temporal. Default: true with an API key or one of the files below.'),
  TEMPORAL_TLS_CA_FILE: text
    .optional()
    .describe("File with the authorities (PEM) that sign Temporal's certificate. Default: the system's."),
  TEMPORAL_TLS_CERT_FILE: text
    .optional()
    .describe('File with the certificate (PEM) with which the service identifies itself, for mTLS.'),
  TEMPORAL_TLS_KEY_FILE: text.optional().describe('File with the private key (PEM) of that certificate.'),
  TEMPORAL_TLS_SERVER_NAME: text
    .optional()
    .describe("Name that Temporal's certificate has to have. Default: the host of the address."),
  TEMPORAL_API_KEY: text.optional().describe('API key, as for Temporal Cloud.'),
  TEMPORAL_TASK_QUEUE: text.default('agent-sessions').describe('Task queue in Temporal.'),
}

const signIn = {
  AUTH_MODE: AuthMode.default('none').describe(
    'Who may call: see [authentication](authentication.md). In mode none everyone may do everything, so keep it off the internet.',
  ),
  AUTH_BASE_URL: plainUrl
    .default('http://localhost:9300/api')
    .transform(withoutSlash)
    .describe('Where browsers reach the service. A leading `/api` is ignored on every route.'),
  AUTH_JWT_SECRET: text
    .optional()
    .describe('Signs tokens: 32 characters or more, such as `openssl rand -hex 32`. Required in modes admin and full.'),
  AUTH_JWT_ACCESS_TOKEN_LIFETIME: wholeSeconds
    .default(15 * MINUTE_SECS)
    .describe('Seconds that an access token is valid.'),
  AUTH_JWT_REFRESH_TOKEN_LIFETIME: wholeSeconds
    .default(30 * DAY_SECS)
    .describe('Seconds that a login lasts after its last refresh.'),
  AUTH_ADMIN_EMAIL: z
    .string()
    .transform(normalizeEmail)
    .pipe(z.email())
    .optional()
    .describe('E-mail of the owner of the default organization. Required in mode admin, optional in full.'),
  AUTH_ADMIN_PASSWORD: Password.optional().describe("That owner's password. Required in mode admin, optional in full."),
  AUTH_DISABLE_PASSWORD: flag.describe('`true`: nobody logs in or registers with a password.'),
  AUTH_DISABLE_SIGNUP: flag.describe('`true`: no new users, not even through identity providers.'),
  AUTH_IDPA_CLIENT_ID: text
    .optional()
    .describe('With the secret, enables sign-in at idpa, an OpenID Connect provider.'),
  AUTH_IDPA_CLIENT_SECRET: text.optional().describe('Client secret at idpa.'),
  AUTH_IDPA_REDIRECT_URI: httpUrl
    .optional()
    .describe('Callback address of idpa. Default: [below AUTH_BASE_URL](authentication.md#identity-providers).'),
  AUTH_IDPA_ALLOWED_DOMAINS: domains
    .optional()
    .describe('Comma-separated domains of the e-mail addresses that may sign in at idpa. Default: all.'),
  AUTH_IDPA_ISSUER: safeUrl
    .refine((url) => !url.includes('/.well-known/'), { error: 'must be the issuer itself, without /.well-known/' })
    .default('https://accounts.google.com')
    .describe('OpenID Connect issuer of idpa.'),
  AUTH_IDPB_CLIENT_ID: text.optional().describe('With the secret, enables sign-in at idpb, an OAuth 2.0 provider.'),
  AUTH_IDPB_CLIENT_SECRET: text.optional().describe('Client secret at idpb.'),
  AUTH_IDPB_REDIRECT_URI: httpUrl
    .optional()
    .describe('Callback address of idpb. Default: [below AUTH_BASE_URL](authentication.md#identity-providers).'),
  AUTH_IDPB_AUTHORIZE_URL: safeUrl
    .default('https://github.com/login/oauth/authorize')
    .describe('Authorization endpoint of idpb.'),
  AUTH_IDPB_TOKEN_URL: safeUrl
    .default('https://github.com/login/oauth/access_token')
    .describe('Token endpoint of idpb.'),
  AUTH_IDPB_USER_URL: safeUrl
    .default('https://api.github.com/user')
    .describe('User endpoint of idpb. E-mail addresses may be at `/emails` below it.'),
  AUTH_IDPB_SCOPE: text.default('read:user user:email').describe('Scope requested at idpb.'),
}

const secrets = {
  SECRETS_ENCRYPTION_KEY: encryptionKey
    .optional()
    .describe(
      'Encrypts stored secrets: 32 bytes as 64 hex digits or base64, the same for API and worker. Required in mode full; ' +
        'otherwise a key is kept in the database.',
    ),
  SECRETS_ENCRYPTION_KEY_PREVIOUS: commaSeparated
    .pipe(z.array(encryptionKey).max(10, { error: 'must be at most 10 keys' }))
    .describe('Up to 10 comma-separated keys that only decrypt: see [key rotation](operations.md#key-rotation).'),
}

const providers = {
  DEFAULT_OPENAI_API_KEY: text
    .optional()
    .describe('Adds OpenAI (Responses API) to the providers of every organization, and makes its model the default.'),
  DEFAULT_OPENAI_BASE_URL: plainUrl
    .optional()
    .describe(
      'Endpoint compatible with Chat Completions that is used instead of OpenAI. It may be on a private network.',
    ),
  DEFAULT_OPENAI_MODEL: text.optional().describe('Model of that provider. Default: `gpt-5-mini`.'),
  DEFAULT_ANTHROPIC_API_KEY: text
    .optional()
    .describe('Adds Anthropic. Its model is the default if there is no OpenAI.'),
  DEFAULT_ANTHROPIC_MODEL: text.optional().describe('Model of that provider. Default: `claude-sonnet-5-5`.'),
  DEFAULT_GEMINI_API_KEY: text
    .optional()
    .describe('Adds Google Gemini. Its model is the default if there is neither OpenAI nor Anthropic.'),
  DEFAULT_GEMINI_MODEL: text.optional().describe('Model of that provider. Default: `gemini-3.8-flash`.'),
}

const network = {
  ALLOWED_PRIVATE_HOSTS: privateHosts.describe(
    'Hosts of private networks that tools, providers, MCP servers and schedules may call, such as `ollama:11434, 10.0.0.0/8`.',
  ),
  ALLOW_PRIVATE_NETWORK: flag.describe(
    "`true` lets them call all addresses of private networks, except the service's own and metadata services.",
  ),
}

const streams = {
  SSE_REALTIME_CYCLE_SECS: seconds
    .default(300)
    .describe("Seconds, ±20 %, after which a session's stream asks its client to reconnect."),
  SSE_MONITORING_CYCLE_SECS: seconds.default(600).describe('The same for a monitoring stream.'),
  SSE_HEARTBEAT_INTERVAL_SECS: seconds
    .default(30)
    .describe('Seconds of silence after which a stream sends a heartbeat.'),
  SSE_MAX_STREAMS_PER_ORGANIZATION: whole(1, 10_000)
    .default(1000)
    .describe("Open streams of an organization, and of all of its owner's, on one API process. Beyond that: 429."),
}

const turns = {
  LLM_IDLE_TIMEOUT_SECS: seconds
    .default(120)
    .describe('Seconds that a model may be silent before its call is retried.'),
  // A call that waits is an idle socket. Each may come to need an activity, so the worker has as many slots.
  MAX_MODEL_CALLS: whole(1, 100_000)
    .default(3000)
    .describe('Model calls that a process makes at once, four fifths of them for one owner.'),
  // Less than the time limit of the activity, so that the failure is counted and reported.
  MAX_MODEL_CALL_SECONDS: whole(1, 1700).default(1500).describe('Seconds that one model call may take.'),
  MAX_TURN_SECONDS: longSeconds
    .default(DAY_SECS)
    .describe('Seconds that a turn may run, without the time in which it waits for people.'),
  TURN_STALLED_SECS: longSeconds
    .default(15 * MINUTE_SECS)
    .describe('Seconds without an event after which an active turn counts as stalled.'),
  MAX_TURN_ITERATIONS: whole(1, 1000).default(100).describe('Model calls that a turn may make.'),
  BUDGET_UNKNOWN_PRICES: z
    .enum(['refuse', 'allow'])
    .default('refuse')
    .describe('Model calls with an unknown price, in turns with a budget in USD: `refuse` fails the turn.'),
  MAX_TURN_TOOL_CALLS: whole(0, 1_000_000).default(0).describe('Tool calls that a turn may make. 0: no limit.'),
  MAX_TURN_OUTPUT_TOKENS: whole(0, 1_000_000_000)
    .default(0)
    .describe('Output tokens of a turn, summed over its model calls. 0: no limit.'),
  MAX_RUNNING_TURNS_PER_ORGANIZATION: whole(0, 1_000_000)
    .default(0)
    .describe('Turns of an organization that run at once; others wait, in the order of their messages. 0: no limit.'),
  CLIENT_TOOL_TIMEOUT: longSeconds
    .default(DAY_SECS)
    .describe("Seconds that a turn waits for the results of its client's tools."),
}

const retention = {
  SESSION_RETENTION_DAYS: whole(0, 36_500)
    .default(0)
    .describe(
      'Days after which a session in which nothing happens is deleted, unless it is pinned, waits for its client or has a ' +
        'schedule. 0 keeps all.',
    ),
  DELTA_RETENTION_SECS: longSeconds
    .default(HOUR_SECS)
    .describe("Seconds that a message's deltas are kept once it is complete."),
  IDEMPOTENCY_KEY_RETENTION_SECS: longSeconds
    .default(DAY_SECS)
    .describe('Seconds in which a request with an `Idempotency-Key` can be repeated.'),
  SCHEDULE_EXECUTION_RETENTION_SECS: longSeconds
    .default(90 * DAY_SECS)
    .describe('Seconds that executions of schedules are kept.'),
  ORGANIZATION_EVENT_RETENTION_SECS: longSeconds
    .default(7 * DAY_SECS)
    .describe("Seconds that the events of an [organization's stream](guides/events-and-tools.md) are kept."),
  WEBHOOK_DELIVERY_RETENTION_SECS: longSeconds
    .default(30 * DAY_SECS)
    .describe('Seconds that deliveries of webhooks are kept.'),
  AUDIT_RETENTION_DAYS: whole(0, 36_500)
    .default(400)
    .describe('Days that entries of the [audit log](guides/audit.md) are kept. 0 keeps all.'),
}

const quotas = {
  LLM_MAX_PROVIDERS: whole(0, 1000).default(50).describe('LLM providers of one organization.'),
  LLM_MAX_MODELS_PER_PROVIDER: whole(0, 100_000).default(5000).describe('Models of one provider.'),
  SKILLS_MAX_COUNT: whole(0, 100_000).default(1000).describe('Skills of one organization.'),
  SCHEDULES_MAX_COUNT: whole(0, 100_000).default(1000).describe('Schedules of one organization.'),
  SCHEDULE_EXECUTIONS_MAX_RUNNING: whole(1, 10_000)
    .default(20)
    .describe("Executions that run at once, of all schedules of an owner's organizations. More are skipped."),
  BASH_MAX_PROCESSES: whole(1, 1000)
    .optional()
    .describe(
      'Bash commands that one worker runs at once; others wait. Default: two a core, but no more than one for each ' +
        '1.5 GiB of memory; at least 2.',
    ),
  MCP_MAX_SERVERS: whole(0, 1000).default(100).describe('MCP servers of one organization.'),
  // Each event is compared with all of them.
  WEBHOOKS_MAX_COUNT: whole(0, 1000).default(50).describe('Webhooks of one organization.'),
  // An image is decoded from memory, one at a time.
  IMAGE_MAX_BYTES: whole(1, 100 * MiB)
    .default(MAX_IMAGE_BYTES)
    .describe('Size of one uploaded image.'),
  // Counted with each upload.
  IMAGE_MAX_COUNT: whole(0, 100_000).default(10_000).describe('Images of one organization.'),
  IMAGE_MAX_TOTAL_BYTES: whole(0)
    .default(10 * GiB)
    .describe('Size of all images of one organization.'),
  // A file is sent as JSON, whose limit no configuration changes.
  SESSION_FILE_MAX_BYTES: whole(1, MAX_FILE_BYTES).default(MAX_FILE_BYTES).describe('Size of one file of a session.'),
  // Bash lists all of them for each command.
  SESSION_FILES_MAX_COUNT: whole(0, 100_000).default(20_000).describe('Files and directories of one session.'),
  SESSION_FILES_MAX_TOTAL_BYTES: whole(0).default(GiB).describe('Size of all files of one session.'),
  // Each change adds up the sizes of all.
  SESSION_STORAGE_MAX_COUNT: whole(0, 10_000).default(1000).describe('Values of one session, and its secrets.'),
  SESSION_STORAGE_MAX_TOTAL_BYTES: whole(0)
    .default(64 * MiB)
    .describe('Size of all values and secrets of one session.'),
}

/** The environment variables. Defaults match the services that `npm start` and `npm run services` start. */
export const Variables = z.object({
  ...api,
  ...traces,
  ...connections,
  ...signIn,
  ...secrets,
  ...providers,
  ...network,
  ...streams,
  ...turns,
  ...retention,
  ...quotas,
})

/** The variables in the order of docs/configuration.md, which `npm run configuration` writes. */
export const variableSections: [title: string, variables: Record<string, z.ZodType>][] = [
  ['API', api],
  ['Traces', traces],
  ['Connections', connections],
  ['Sign-in', signIn],
  ['Stored secrets', secrets],
  ['Predefined providers', providers],
  ['Private networks', network],
  ['Streams', streams],
  ['Turns and models', turns],
  ['Retention', retention],
  ['Quotas', quotas],
]
