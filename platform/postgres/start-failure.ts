import { tlsFailure } from '../certificates.ts'
import { ConfigError } from '../config-error.ts'

const HOW_TO_TRUST = 'name its authority in DATABASE_CA_FILE, or as sslrootcert in the URL'
const FOR_POOLER = 'a pooler in transaction mode needs DATABASE_POOLER=transaction'

/**
 * Returns a ConfigError for a failure of Postgres that waiting does not mend: no TLS as wanted, a refused login, no such
 * database, missing rights, a pooler that is not expected. Undefined for all others. `variable` holds the address.
 */
export function toConfigError(error: unknown, variable: string): ConfigError | undefined {
  const cause = deepestCause(error)
  const reason = tlsFailure(cause, HOW_TO_TRUST) ?? reasonOf(cause)
  return reason === undefined ? undefined : new ConfigError(`${variable}: ${reason}`)
}

function deepestCause(error: unknown): { code?: unknown; message?: string } {
  const { cause } = (error ?? {}) as { cause?: unknown }
  return cause instanceof Error ? deepestCause(cause) : ((error ?? {}) as Error)
}

function reasonOf({ code, message = '' }: { code?: unknown; message?: string }): string | undefined {
  if (message.startsWith('The server does not support SSL')) return 'sslmode wants TLS, which the server does not speak'
  if (code === '28000' || code === '28P01' || message.startsWith('SASL'))
    return `the server refuses the login: ${message}`
  if (code === '3D000') return message
  if (code === '42501' || code === '3F000') return `the role lacks rights, see docs/operations.md: ${message}`
  if (code === 'ERR_INVALID_URL') return 'must be an address such as postgres://user:password@host:5432/database'
  if (/unsupported startup parameter/.test(message)) return `${message}; ${FOR_POOLER}`
  return /prepared statement "s\d+" (already exists|does not exist)/.test(message)
    ? `${message}; ${FOR_POOLER}`
    : undefined
}
