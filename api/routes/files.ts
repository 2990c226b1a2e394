import { type FileInfo, fileEndpoints, type SessionFile, type UpdateFileRequest } from '../../contract/files.ts'
import type { Deps } from '../../domain/deps.ts'
import { grepFiles } from '../../domain/files/grep/search.ts'
import { listFiles } from '../../domain/files/list.ts'
import { openFile, statFile } from '../../domain/files/read.ts'
import { copyFile, createFile, deleteFile, moveFile, updateFile } from '../../domain/files/write.ts'
import { scopeOf } from '../../domain/session-scope.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerContent } from '../http/json-content.ts'
import { answerList, linesOf } from '../http/json-list.ts'
import { untilClosed } from '../http/until-closed.ts'

/** Length of a written content up to which the answer repeats it. */
const ECHOED_CHARACTERS = 64 * 1024

export function fileRoutes(handle: Handle, deps: Deps): void {
  const listingOf = ({ recursive }: { recursive: boolean }) => (recursive ? 'subtree' : 'children')

  handle(fileEndpoints.listRoot, async ({ actor, params, query, ctx }) => {
    const scope = scopeOf(actor, params.session_id)
    await statFile(deps, scope, '/')
    return answerList(ctx, deps.log, linesOf(listFiles(deps, scope, '/', listingOf(query))))
  })
  handle(fileEndpoints.copy, async ({ actor, params, body, once }) => {
    const scope = scopeOf(actor, params.session_id)
    return reply(201, await once((attempt) => copyFile(deps, scope, body.src_path, body.dst_path, attempt)))
  })
  handle(fileEndpoints.move, async ({ actor, params, body }) =>
    reply(200, await moveFile(deps, scopeOf(actor, params.session_id), body.src_path, body.dst_path)),
  )
  handle(fileEndpoints.stat, async ({ actor, params, body }) =>
    reply(200, await statFile(deps, scopeOf(actor, params.session_id), body.path)),
  )
  handle(fileEndpoints.grep, async ({ actor, params, body, ctx }) => {
    const scope = scopeOf(actor, params.session_id)
    const { results, isTruncated } = await grepFiles(deps, scope, body, untilClosed(ctx))
    const lines = linesOf(asPage(results))
    return answerList(ctx, deps.log, lines, { more: isTruncated ? { truncated: true } : {} })
  })
  handle(fileEndpoints.get, async ({ actor, params, query, ctx }) => {
    const scope = scopeOf(actor, params.session_id)
    const opened = await openFile(deps, scope, params.path)
    if (opened !== 'directory') return answerContent(ctx, deps.log, opened.info, opened)
    return answerList(ctx, deps.log, linesOf(listFiles(deps, scope, params.path, listingOf(query))))
  })
  handle(fileEndpoints.create, async ({ actor, params, body, once }) => {
    const scope = scopeOf(actor, params.session_id)
    const file = await once((attempt) => createFile(deps, scope, params.path, body, attempt))
    return reply(201, file.is_directory ? file : withContent(file, { ...body, content: body.content ?? '' }))
  })
  handle(fileEndpoints.update, async ({ actor, params, body }) =>
    reply(200, withContent(await updateFile(deps, scopeOf(actor, params.session_id), params.path, body), body)),
  )
  handle(fileEndpoints.delete, async ({ actor, params, query }) => {
    const isRecursive = query.recursive
    const deleted = await deleteFile(deps, scopeOf(actor, params.session_id), params.path, { isRecursive })
    return reply(200, { deleted })
  })
}

/** Adds the content that a request has written. It is not stored with an Idempotency-Key, which has the same request. */
const withContent = (file: FileInfo, { content, encoding }: UpdateFileRequest): SessionFile =>
  typeof content === 'string' && content.length <= ECHOED_CHARACTERS
    ? { ...file, content, encoding: encoding ?? 'text' }
    : file

async function* asPage<T>(items: T[]): AsyncGenerator<T[]> {
  yield items
}
