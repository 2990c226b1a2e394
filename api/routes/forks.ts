import { forkEndpoints } from '../../contract/forks.ts'
import type { Deps } from '../../domain/deps.ts'
import { forkSession } from '../../domain/forks/fork.ts'
import { readTree } from '../../domain/forks/tree.ts'
import { type Handle, reply } from '../http/handle.ts'

export function forkRoutes(handle: Handle, deps: Deps): void {
  handle(forkEndpoints.fork, async ({ actor, params, body, once }) =>
    reply(201, await once((attempt) => forkSession(deps, actor, params.session_id, body, attempt))),
  )
  handle(forkEndpoints.tree, async ({ actor, params }) => reply(200, await readTree(deps, actor, params.session_id)))
}
