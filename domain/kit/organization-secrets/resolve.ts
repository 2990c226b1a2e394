import { matchesHost } from '../../../lib/outgoing/host-pattern.ts'
import type { OrganizationSecret } from '../../../prisma/generated/client.ts'
import type { Deps } from '../deps.ts'
import { placeOf, UnreadableSecret } from '../secrets.ts'
import { ORGANIZATION_SECRETS } from './column.ts'
import { fillIn, namesIn } from './references.ts'

/** Columns of a secret that its use needs. */
export type UsableSecret = Pick<OrganizationSecret, 'name' | 'hosts' | 'value'>

/** Request that is about to be sent. Its URL decides which secrets it may carry. */
export type Destination = { organizationId: string; url: string }

/** Error of a request that must not be sent with a secret, in a sentence for people and models. */
export class SecretRefused extends Error {
  override name = 'SecretRefused'
}

/** `fill` puts the secrets into a text. `values` has them by name, to be hidden in what the other server sends. */
export type ResolvedSecrets = { fill: (text: string) => string; values: Record<string, string> }

/** Maximum size of what is sent in place of references in one request. */
const MAX_FILLED_BYTES = 64 * 1024

/**
 * Reads the secrets that the texts of a request name, when the request is sent. Reads the record only if they name any.
 * Throws `SecretRefused`, and `UnreadableSecret` if another process may be able to read it.
 */
export async function resolveSecrets(
  deps: Pick<Deps, 'db' | 'secrets'>,
  destination: Destination,
  texts: readonly string[],
): Promise<ResolvedSecrets> {
  const names = namesIn(texts)
  if (names.length === 0) return { fill: (text) => text, values: {} }
  const where = { organizationId: destination.organizationId, name: { in: names } }
  const rows = await deps.db.organizationSecret.findMany({ where })
  const known = new Map(rows.map((row) => [row.name, row]))
  const values = new Map(names.map((name) => [name, openSecret(deps, destination, name, known.get(name))]))
  const valueFor = (name: string) => values.get(name) ?? ''
  let bytes = 0
  for (const text of texts) {
    fillIn(text, (name) => {
      bytes += valueFor(name).length
      return ''
    })
  }
  if (bytes > MAX_FILLED_BYTES)
    throw new SecretRefused(`The secrets have more than ${MAX_FILLED_BYTES} bytes together.`)
  return { fill: (text) => fillIn(text, valueFor), values: Object.fromEntries(values) }
}

/** Decrypts a secret for a request. Throws as `resolveSecrets` does. */
export function openSecret(
  { secrets }: Pick<Deps, 'secrets'>,
  { organizationId, url }: Destination,
  name: string,
  secret: UsableSecret | null | undefined,
): string {
  if (secret == null) {
    throw new SecretRefused(
      `There is no secret ${name} any more; an administrator has to set it (PUT /v1/secrets/${name}).`,
    )
  }
  const problem = hostProblem(secret, url)
  if (problem !== undefined) throw new SecretRefused(`The request was not sent: ${problem}.`)
  try {
    return secrets.decrypt(secret.value, placeOf(ORGANIZATION_SECRETS, [organizationId, name]))
  } catch (error) {
    if (!(error instanceof UnreadableSecret) || !error.isDamaged) throw error
    throw new SecretRefused(`The secret ${name} is damaged and cannot be read; an administrator has to set it again.`)
  }
}

const MAX_HOSTS_SHOWN = 3

/** Says why a secret must not be sent to a URL. Undefined if it may. */
export function hostProblem({ name, hosts }: Pick<UsableSecret, 'name' | 'hosts'>, url: string): string | undefined {
  const to = new URL(url)
  if (hosts.some((pattern) => matchesHost(pattern, to))) return undefined
  const shown = hosts.slice(0, MAX_HOSTS_SHOWN).join(', ') + (hosts.length > MAX_HOSTS_SHOWN ? ', …' : '')
  return `the secret ${name} may only be sent to ${shown}, not to ${to.origin}; an administrator can set its hosts`
}
