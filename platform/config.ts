import type { z } from 'zod'
import { readNamedFile } from './certificates.ts'
import { ConfigError } from './config-error.ts'
import { MAKE_KEY } from './variable-kinds.ts'
import { Variables } from './variables.ts'

export { ConfigError }

/** Names of all variables that can be configured. */
export const configVariables: string[] = Object.keys(Variables.shape)

/** Without authentication the API listens on this machine alone, unless HOST is given. */
const listenHost = ({ HOST, AUTH_MODE }: z.infer<typeof Variables>): string =>
  HOST ?? (AUTH_MODE === 'none' ? '127.0.0.1' : '0.0.0.0')

/** The variables, including the ones that the authentication mode requires. Each issue gives the reason. */
const Environment = Variables.superRefine((config, issues) => {
  const need = (variable: keyof typeof config, why: string) => {
    if (config[variable] === undefined)
      issues.addIssue({ code: 'custom', path: [variable], message: `is needed ${why}` })
  }
  if (config.DATABASE_POOLER === 'transaction' && config.MIGRATE_ON_START)
    need('DATABASE_MIGRATION_URL', 'with DATABASE_POOLER=transaction: migrations take a lock that such a pooler drops')
  if (config.REDIS_CLUSTER && config.REDIS_SENTINEL_NAME !== undefined)
    issues.addIssue({ code: 'custom', path: ['REDIS_CLUSTER'], message: 'has no Sentinels: drop REDIS_SENTINEL_NAME' })
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

/** Settings that the console needs, or undefined when it is off. */
export const consoleOptions = ({ CONSOLE, TEMPORAL_UI_URL, TEMPORAL_NAMESPACE }: Config) =>
  CONSOLE === 'off'
    ? undefined
    : { temporalUi: TEMPORAL_UI_URL ? { url: TEMPORAL_UI_URL, namespace: TEMPORAL_NAMESPACE } : undefined }

export const callerLimits = (config: Config) => ({
  perKey: config.RATE_LIMIT_PER_KEY_PER_MINUTE,
  perOrganization: config.RATE_LIMIT_PER_ORGANIZATION_PER_MINUTE,
})

/** Returns the variables whose values are in files, as `<NAME>_FILE` names them. Throws ConfigError. */
function readFiles(given: Record<string, string | undefined>): Record<string, string> {
  const values: Record<string, string> = {}
  for (const name of configVariables) {
    const fileName = `${name}_FILE`
    const file = given[fileName]
    if (file === undefined) continue
    if (given[name] !== undefined) throw new ConfigError(`${fileName}: must not be given together with ${name}`)
    values[name] = readNamedFile(file, fileName).replace(/\r?\n$/, '')
  }
  return values
}

/**
 * Reads the environment; an empty variable counts as absent. Throws ConfigError naming every malformed variable, or else
 * every missing one.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const parsed = Environment.safeParse({ ...given, ...readFiles(given) })
  if (parsed.success) return parsed.data
  throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('\n'))
}
