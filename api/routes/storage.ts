import { storageEndpoints } from '../../contract/storage.ts'
import type { Deps } from '../../domain/deps.ts'
import { listSecrets, listValues } from '../../domain/storage/list.ts'
import type { Handle } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

export function storageRoutes(handle: Handle, deps: Deps): void {
  handle(storageEndpoints.listKeys, async ({ actor, params, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listValues(deps, actor, params.session_id))),
  )
  handle(storageEndpoints.listSecrets, async ({ actor, params, ctx }) =>
    answerList(ctx, deps.log, linesOf(await listSecrets(deps, actor, params.session_id))),
  )
}
