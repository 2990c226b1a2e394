import { z } from 'zod'

/** Every prefixed id is `<prefix>_` and the 32 lower-case hex digits of a UUID. */
const idOf = (prefix: string, ...alsoAccepted: string[]) => {
  const prefixes = [prefix, ...alsoAccepted].join('|')
  return z.string().regex(new RegExp(`^(?:${prefixes})_[0-9a-f]{32}$`), {
    error: `must be ${prefix}_ followed by 32 lower-case hex digits`,
  })
}

export const AgentId = idOf('agent')
export const SessionId = idOf('session')
/** Path parameters accept the short prefix of the interface too; from there on it is `session_`. */
export const SessionPathId = idOf('session', 'sess').transform((id) => id.replace(/^sess_/, 'session_'))
export const MessageId = idOf('message')
export const TurnId = idOf('turn')
export const EventId = idOf('event')
export const ExecId = idOf('exec')
export const ModelId = idOf('model')
export const ProviderId = idOf('provider')
export const HarnessId = idOf('harness')
export const OrganizationId = idOf('org')

/** Those that have no prefix. */
const uuid = z
  .string()
  .regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, { error: 'must be a UUID in lower case' })
export const UserId = uuid.meta({ format: 'uuid' })
export const ApiKeyId = uuid.meta({ format: 'uuid' })

/** An image may be named by its UUID or as `img_<hex>`; answers always have the UUID. */
export const ImageId = z
  .string()
  .regex(/^(?:img_[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/, {
    error: 'must be a UUID in lower case, or img_ followed by its 32 hex digits',
  })
  .transform((id) => id.replace(/^img_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'))
