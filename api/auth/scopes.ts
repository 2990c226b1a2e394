import { endpoints } from '../../contract/index.ts'
import type { Endpoint } from '../../contract/kit/endpoint.ts'
import { invalid } from '../../domain/kit/errors.ts'

/** Tags of the operations, and of the faces, which are not in the API's document. */
const areas = [...new Set([...endpoints.map(({ tag }) => tag), 'faces'])].sort()

/** Throws `invalid` for an unknown scope. */
export function checkScopes(scopes: readonly string[]): void {
  const known = ['read', 'write', ...areas.flatMap((area) => [`${area}:read`, `${area}:write`])]
  const unknown = scopes.find((scope) => !known.includes(scope))
  if (unknown !== undefined) {
    throw invalid(`scopes: must be of ${known.join(', ')}, not "${unknown.slice(0, 100)}"`)
  }
}

/** Reports whether a key with these scopes may call the endpoint. A key without scopes may call every endpoint. */
export function allows(scopes: string[], { method, tag }: Pick<Endpoint, 'method' | 'tag'>): boolean {
  if (scopes.length === 0) return true
  const enough = ['write', `${tag}:write`, ...(method === 'GET' ? ['read', `${tag}:read`] : [])]
  return scopes.some((scope) => enough.includes(scope))
}
