import { secretEndpoints } from '../../contract/secrets.ts'
import type { Deps } from '../../domain/deps.ts'
import { deleteSecret, putSecret } from '../../domain/kit/organization-secrets/change.ts'
import { listSecrets } from '../../domain/kit/organization-secrets/list.ts'
import { type Handle, reply } from '../http/handle.ts'

export function secretRoutes(handle: Handle, deps: Deps): void {
  handle(secretEndpoints.list, async ({ actor }) => reply(200, { data: await listSecrets(deps, actor) }))
  handle(secretEndpoints.put, async ({ actor, params, body }) =>
    reply(200, await putSecret(deps, actor, params.name, body)),
  )
  handle(secretEndpoints.delete, async ({ actor, params }) => {
    await deleteSecret(deps, actor, params.name)
    return reply(204, undefined)
  })
}
