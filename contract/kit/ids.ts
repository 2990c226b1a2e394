import { z } from 'zod'

/** Prefix of each kind of id on the wire. */
export type IdPrefix =
  | 'org'
  | 'agent'
  | 'session'
  | 'message'
  | 'turn'
  | 'event'
  | 'exec'
  | 'model'
  | 'provider'
  | 'mcp'
  | 'skill'
  | 'budget'
  | 'harness'
  | 'webhook'
  | 'delivery'

/** UUID of one kind of object. Ids have this form everywhere except on the wire. */
export type Uuid<Kind extends string> = string & z.core.$brand<Kind>

/** Returns an id's form on the wire: `session_<32 hex>` for `session` and a UUID. */
export const toId = (prefix: IdPrefix, uuid: string): string => `${prefix}_${uuid.replaceAll('-', '')}`

/** Returns the UUID of an id in its form on the wire, and a plain UUID unchanged. The id must be valid. */
export const fromId = (id: string): string =>
  id.slice(id.indexOf('_') + 1).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

// Asserts the type at the parsing boundary: the schemas below have validated the id.
const toUuid = <Kind extends string>(id: string) => fromId(id) as Uuid<Kind>

/** Returns the schema of an id in an answer: `<prefix>_` and the 32 lower-case hex digits of a UUID. */
export const wireId = (prefix: IdPrefix, ...alsoAccepted: string[]) => {
  const prefixes = [prefix, ...alsoAccepted].join('|')
  return z.string().regex(new RegExp(`^(?:${prefixes})_[0-9a-f]{32}$`), {
    error: `must be ${prefix}_ followed by 32 lower-case hex digits`,
  })
}

/**
 * Returns the codec of an id in a request, which is parsed to its UUID. The fingerprint of a request needs it encoded
 * again.
 */
const idOf = <P extends IdPrefix>(prefix: P, ...alsoAccepted: string[]) =>
  z.codec(wireId(prefix, ...alsoAccepted), z.custom<Uuid<P>>(), {
    decode: (id) => toUuid<P>(id),
    encode: (uuid) => toId(prefix, uuid),
  })

export const AgentId = idOf('agent')
export type AgentId = Uuid<'agent'>
/** Id of a session; requests may also use the interface's short prefix `sess`. */
export const SessionId = idOf('session', 'sess')
export type SessionId = Uuid<'session'>
export const TurnId = idOf('turn')
export type TurnId = Uuid<'turn'>
export const ModelId = idOf('model')
export type ModelId = Uuid<'model'>

/** Name of a model in a request, which the domain looks up. */
export type ModelName = { name: string }
export type ModelRef = ModelId | ModelName

const decodeModel = (text: string): ModelRef => (text.startsWith('model_') ? toUuid<'model'>(text) : { name: text })
const encodeModel = (model: ModelRef): string => (typeof model === 'string' ? toId('model', model) : model.name)

/** Model in a request: its id, or its name. */
export const ModelRef = z.codec(
  z
    .string()
    .regex(/^(?:model_[0-9a-f]{32}|(?!model_)[\s\S]{1,255})$/, {
      error: 'must be model_ followed by 32 lower-case hex digits, or the name of a model',
    })
    .meta({ description: 'The id of a model, or its name if the name is unique.' }),
  z.custom<ModelRef>(),
  { decode: decodeModel, encode: encodeModel },
)
/** Model in a change: `""` removes the named model. */
export const ClearableModelRef = z.codec(
  z.string().regex(/^(?:model_[0-9a-f]{32}|(?!model_)[\s\S]{0,255})$/, {
    error: 'must be model_ followed by 32 lower-case hex digits, the name of a model, or "" for none',
  }),
  z.custom<ModelRef | ''>(),
  {
    decode: (text) => (text === '' ? '' : decodeModel(text)),
    encode: (model) => (model === '' ? '' : encodeModel(model)),
  },
)
export const ProviderId = idOf('provider')
export type ProviderId = Uuid<'provider'>
export const McpServerId = idOf('mcp')
export type McpServerId = Uuid<'mcp'>
export const SkillId = idOf('skill')
export type SkillId = Uuid<'skill'>
export const BudgetId = idOf('budget')
export type BudgetId = Uuid<'budget'>
export const HarnessId = idOf('harness')
export type HarnessId = Uuid<'harness'>
export const OrganizationId = idOf('org')
export type OrganizationId = Uuid<'org'>
export const WebhookId = idOf('webhook')
export type WebhookId = Uuid<'webhook'>
export const DeliveryId = idOf('delivery')
export type DeliveryId = Uuid<'delivery'>

/** Id in an answer, of a kind without a prefix. */
export const wireUuid = z
  .string()
  .regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, { error: 'must be a UUID in lower case' })
  .meta({ format: 'uuid' })
export const ApiKeyId = wireUuid.brand<'api key'>()
export type ApiKeyId = Uuid<'api key'>
export const UserId = wireUuid.brand<'user'>()
export type UserId = Uuid<'user'>
export const InvitationId = wireUuid.brand<'invitation'>()
export type InvitationId = Uuid<'invitation'>
export const ScheduleId = wireUuid.brand<'schedule'>()
export type ScheduleId = Uuid<'schedule'>
export const ExecutionId = wireUuid.brand<'execution'>()
export type ExecutionId = Uuid<'execution'>

/** Id of a session that is stored and never looked up, given as a UUID or in either form of a session's id. */
export const NotedSessionId = z.codec(
  z.string().regex(/^(?:(?:session|sess)_[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/, {
    error: 'must be a UUID in lower case, or session_ followed by its 32 hex digits',
  }),
  z.custom<SessionId>(),
  { decode: (id) => toUuid<'session'>(id), encode: (uuid) => toId('session', uuid) },
)

/** Id of an image, given as its UUID or as `img_<hex>`; answers always have the UUID. */
export const ImageId = z.codec(
  z.string().regex(/^(?:img_[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/, {
    error: 'must be a UUID in lower case, or img_ followed by its 32 hex digits',
  }),
  z.custom<Uuid<'image'>>(),
  { decode: (id) => toUuid<'image'>(id), encode: (uuid) => uuid },
)
export type ImageId = Uuid<'image'>
