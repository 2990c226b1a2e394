import { storageEndpoints } from '../../contract/storage.ts'
import type { Deps } from '../../domain/deps.ts'
import { notFound } from '../../domain/kit/errors.ts'
import { scopeOf } from '../../domain/kit/session-scope.ts'
import { deleteStored, setStored } from '../../domain/session-data/storage/change.ts'
import { listSecrets, listValues } from '../../domain/session-data/storage/list.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function storageRoutes(handle: Handle, deps: Deps): void {
  handle(storageEndpoints.listKeys, async ({ actor, params, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listValues(deps, actor, params.session_id))),
  )
  handle(storageEndpoints.listSecrets, async ({ actor, params, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listSecrets(deps, actor, params.session_id))),
  )
  handle(storageEndpoints.putKey, async ({ actor, params, body }) => {
    await setStored(deps, scopeOf(actor, params.session_id), 'value', params.key, body.value)
    return reply(204, undefined)
  })
  handle(storageEndpoints.putSecret, async ({ actor, params, body }) => {
    await setStored(deps, scopeOf(actor, params.session_id), 'secret', params.name, body.value)
    return reply(204, undefined)
  })
  handle(storageEndpoints.deleteKey, async ({ actor, params }) => {
    const { existed } = await deleteStored(deps, scopeOf(actor, params.session_id), 'value', params.key)
    if (!existed) throw notFound('Value')
    return reply(204, undefined)
  })
  handle(storageEndpoints.deleteSecret, async ({ actor, params }) => {
    const { existed } = await deleteStored(deps, scopeOf(actor, params.session_id), 'secret', params.name)
    if (!existed) throw notFound('Secret')
    return reply(204, undefined)
  })
}
