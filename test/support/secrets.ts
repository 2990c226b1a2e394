import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Endpoint } from '../../contract/kit/endpoint.ts'
import { type Config, configVariables } from '../../platform/config.ts'

const SECRET_VARIABLE = /(_SECRET|_PASSWORD|_API_KEY|_KEY|_KEY_PREVIOUS|^DATABASE_URL)$/
const SECRET_FIELD = /(^|_)(password|passphrase|secret|token|key|credential|credentials|authorization)$/i

/** Names that match the patterns but are not secrets, with the reason. */
const NO_SECRETS: Record<string, string> = {
  AUTH_DISABLE_PASSWORD: 'it is a flag',
}

const isSecret = (name: string, form: RegExp): boolean => form.test(name) && NO_SECRETS[name] === undefined

/** Returns the configuration variables that are secrets, going by their names. */
export const secretVariables = (names: readonly string[] = configVariables): string[] =>
  names.filter((name) => isSecret(name, SECRET_VARIABLE))

/** Returns the values that must not appear in logs and histories. */
export const secretsOf = (config: Config): string[] =>
  secretVariables().flatMap((name) => {
    const value = config[name as keyof Config]
    return [value].flat().filter((one) => typeof one === 'string')
  })

/** Returns a made-up value for every secret in the configuration except the database URL, which must stay valid. */
export const madeUpSecrets = (): Record<string, string> =>
  Object.fromEntries(
    secretVariables()
      .filter((name) => name !== 'DATABASE_URL')
      .map((name) => [name, ENCRYPTION_KEY.test(name) ? madeUpKey(name) : `jwt-secret-of-tests-${name}`]),
  )

const ENCRYPTION_KEY = /_ENCRYPTION_KEY(_PREVIOUS)?$/
const madeUpKey = (name: string): string => createHash('sha256').update(name).digest('hex')

/** Throws with a sentence for each secret of the configuration that a test's service has not been given. */
export function expectEachSecretSet(config: Partial<Config>, file: string, names = secretVariables()): void {
  const sentences = names
    .filter((name) => [config[name as keyof Config] ?? []].flat().length === 0)
    .map(
      (name) =>
        `${name} is a secret by its name and ${file} does not look for it: give its service a value, ` +
        'or say in NO_SECRETS of test/support/secrets.ts why it is not secret.',
    )
  if (sentences.length > 0) throw new Error(sentences.join('\n'))
}

/** Returns the request fields that are secrets, going by their names. */
export function secretFields(endpoints: readonly Endpoint[]): { operation: string; field: string }[] {
  return endpoints.flatMap(({ method, path, body, query }) =>
    [body, query].flatMap((schema) =>
      [...(schema === undefined ? [] : namesIn(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })))]
        .filter((field) => isSecret(field, SECRET_FIELD))
        .map((field) => ({ operation: `${method} ${path}`, field })),
    ),
  )
}

/** Returns the names of all properties in a JSON Schema. */
function namesIn(schema: unknown): Set<string> {
  if (typeof schema !== 'object' || schema === null) return new Set()
  const { properties } = schema as { properties?: object }
  return new Set([...Object.keys(properties ?? {}), ...Object.values(schema).flatMap((part) => [...namesIn(part)])])
}

/** Throws with a sentence for each field that `finds` does not detect in a line containing it. */
export function expectEachFieldFound(fields: ReturnType<typeof secretFields>, finds: (line: string) => boolean): void {
  const sentences = fields
    .filter(({ field }) => !finds(JSON.stringify({ [field]: 'value' })))
    .map(
      ({ operation, field }) =>
        `"${field}" of ${operation} is a secret by its name and logs are not searched for it: add it to ` +
        `"a field that has a secret" in test/support/log-check.ts, or say in NO_SECRETS of test/support/secrets.ts why it is not secret.`,
    )
  if (sentences.length > 0) throw new Error(sentences.join('\n'))
}
