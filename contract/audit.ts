import { z } from 'zod'
import { DateTime, listOf } from './kit/common.ts'
import { fileBody, group } from './kit/endpoint.ts'
import { ApiKeyId, fromId, type IdPrefix, UserId, wireUuid } from './kit/ids.ts'
import { limitUpTo, repeated, time } from './kit/query.ts'

/** Actions that the audit log tells of, by the kind of their target. */
const ACTIONS = {
  agent: ['create', 'update', 'archive'],
  api_key: ['create', 'revoke'],
  budget: ['create', 'update', 'raise', 'delete'],
  invitation: ['create', 'withdraw'],
  llm_model: ['create', 'update', 'delete'],
  llm_provider: ['create', 'update', 'delete', 'sync'],
  mcp_server: ['create', 'update', 'delete', 'connect', 'disconnect'],
  member: ['join', 'update', 'remove'],
  organization: ['create', 'update', 'delete'],
  schedule: ['create', 'update', 'delete', 'trigger'],
  secret: ['put', 'delete'],
  session: ['update', 'delete'],
  skill: ['create', 'update', 'delete'],
  task_queue: ['register', 'delete'],
  turn: ['approve', 'deny', 'cancel'],
  user: ['register', 'sign_in', 'sign_in_failed', 'sign_out', 'delete'],
  webhook: ['create', 'update', 'rotate', 'delete'],
} as const

export type TargetType = keyof typeof ACTIONS
/** Name of an action: the kind of its target, and what happened to it, as in `agent.update`. */
export type AuditAction = { [T in TargetType]: `${T}.${(typeof ACTIONS)[T][number]}` }[TargetType]

/** Prefix of the ids of each kind of target. Other kinds have plain UUIDs; the target of a member is the user. */
export const TARGET_PREFIXES: Partial<Record<TargetType, IdPrefix>> = {
  agent: 'agent',
  budget: 'budget',
  llm_model: 'model',
  llm_provider: 'provider',
  mcp_server: 'mcp',
  organization: 'org',
  session: 'session',
  skill: 'skill',
  turn: 'turn',
  webhook: 'webhook',
}

// The types say the same as these loops, which TypeScript cannot follow.
const TARGET_TYPES = Object.keys(ACTIONS) as [TargetType, ...TargetType[]]
const ALL_ACTIONS = TARGET_TYPES.flatMap((type) => ACTIONS[type].map((verb) => `${type}.${verb}` as AuditAction))

/** Returns the actions on one kind of target. */
export const actionsOn = (type: TargetType): AuditAction[] =>
  ALL_ACTIONS.filter((action) => action.startsWith(`${type}.`))

export const AuditEntry = z
  .object({
    id: wireUuid,
    created_at: DateTime,
    action: z.string().meta({ examples: ['agent.update'] }),
    user_id: wireUuid.nullable().meta({ description: 'Null for a failed sign-in: nobody knows who it was.' }),
    api_key_id: wireUuid.nullable().meta({ description: 'Null for a login.' }),
    address: z.string().nullable().meta({ description: "The caller's IP address." }),
    request_id: z.string().nullable().meta({ description: 'The X-Request-Id of the request.' }),
    target_type: z.string(),
    target_id: z.string(),
    details: z.record(z.string(), z.unknown()).meta({
      description:
        'Names of changed fields, ids and roles, never contents or secrets. An approval has arguments_sha256, the SHA-256 of ' +
        'the arguments as canonical JSON (RFC 8785).',
    }),
  })
  .meta({ id: 'AuditEntry' })
export type AuditEntry = z.infer<typeof AuditEntry>

const TargetId = z.codec(
  z.string().regex(/^(?:[a-z]+_[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/, {
    error: 'must be the id of something, such as agent_ followed by 32 lower-case hex digits',
  }),
  z.string(),
  { decode: fromId, encode: (uuid) => uuid },
)

const MAX_ACTIONS = 100

const auditQuery = z.object({
  action: repeated(z.enum(ALL_ACTIONS as [AuditAction, ...AuditAction[]]), MAX_ACTIONS).meta({
    type: 'array',
    items: { type: 'string', enum: ALL_ACTIONS },
    maxItems: MAX_ACTIONS,
    description: 'Only these actions; repeat the key.',
  }),
  user_id: UserId.optional(),
  api_key_id: ApiKeyId.optional(),
  target_type: z.enum(TARGET_TYPES).optional(),
  target_id: TargetId.optional(),
  from: time.optional().meta({ description: 'Inclusive.' }),
  to: time.optional().meta({ description: 'Exclusive.' }),
  before: wireUuid.optional().meta({ description: 'The id of the last entry of the page before.' }),
  limit: limitUpTo(1000, 100),
})
export type AuditQuery = z.output<typeof auditQuery>

export const NDJSON = 'application/x-ndjson'

export const auditEndpoints = group(
  { tag: 'audit', path: '/v1/audit', access: 'admin' },
  {
    list: {
      operationId: 'listAuditEntries',
      method: 'GET',
      summary: 'Lists who changed, approved and cancelled what, and who signed in, newest first',
      description: `With Accept: ${NDJSON} the answer is every entry that matches, one a line, whatever the limit.`,
      query: auditQuery,
      file: fileBody(NDJSON, 'All entries that match, one a line'),
      responses: { 200: listOf(AuditEntry) },
    },
  },
)
