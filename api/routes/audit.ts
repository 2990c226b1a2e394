import { auditEndpoints, NDJSON } from '../../contract/audit.ts'
import type { Deps } from '../../domain/deps.ts'
import { listAuditEntries } from '../../domain/kit/audit/list.ts'
import type { Handle } from '../http/handle.ts'
import { answerLines, answerList, linesOf } from '../http/json-list.ts'

export function auditRoutes(handle: Handle, deps: Deps): void {
  handle(auditEndpoints.list, async ({ actor, query, ctx }) => {
    const isExport = ctx.accepts('application/json', NDJSON) === NDJSON
    const filter = isExport ? { ...query, limit: undefined } : query
    const lines = linesOf(listAuditEntries(deps, actor, filter))
    return isExport ? answerLines(ctx, deps.log, lines, NDJSON) : answerList(ctx, deps.log, lines)
  })
}
