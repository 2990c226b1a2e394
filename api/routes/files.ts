import type { Context } from 'koa'
import { type FileInfo, fileEndpoints, type SessionFile, type UpdateFileRequest } from '../../contract/files.ts'
import type { Deps } from '../../domain/deps.ts'
import { invalid } from '../../domain/kit/errors.ts'
import { toId } from '../../domain/kit/ids.ts'
import { scopeOf } from '../../domain/kit/session-scope.ts'
import { archiveFiles } from '../../domain/session-data/files/archive.ts'
import { grepFiles } from '../../domain/session-data/files/grep/search.ts'
import { listFiles } from '../../domain/session-data/files/list.ts'
import { type OpenedFile, openFile, statFile } from '../../domain/session-data/files/read.ts'
import { copyFile, createFile, deleteFile, moveFile, updateFile } from '../../domain/session-data/files/write.ts'
import { type ServedFile, sendDownload, sendFile, typeOfName } from '../http/file.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerContent } from '../http/json-content.ts'
import { answerList, linesOf } from '../http/json-list.ts'
import { bytesOf } from '../http/raw-body.ts'
import { untilClosed } from '../http/until-closed.ts'

/** Length of a written content up to which the answer repeats it. */
const ECHOED_CHARACTERS = 64 * 1024

export function fileRoutes(handle: Handle, deps: Deps): void {
  const listingOf = ({ recursive }: { recursive: boolean }) => (recursive ? 'subtree' : 'children')

  handle(fileEndpoints.listRoot, async ({ actor, params, query, ctx }) => {
    const scope = scopeOf(actor, params.session_id)
    await statFile(deps, scope, '/')
    if (query.archive !== undefined) {
      const chunks = archiveFiles(deps, scope, () => ctx.res.destroy())
      return sendDownload(ctx, deps.log, {
        contentType: 'application/zip',
        name: `${toId('session', params.session_id)}.zip`,
        chunks,
      })
    }
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
    if (query.raw || query.download) {
      if (opened === 'directory') throw invalid(`${params.path} is a directory, not a file`)
      return sendFile(ctx, deps.log, serve(ctx, opened, query.download ? 'attachment' : 'inline'), { headers: AS_DATA })
    }
    if (opened !== 'directory') return answerContent(ctx, deps.log, opened.info, opened)
    return answerList(ctx, deps.log, linesOf(listFiles(deps, scope, params.path, listingOf(query))))
  })
  handle(fileEndpoints.create, async ({ actor, params, body, once }) => {
    const scope = scopeOf(actor, params.session_id)
    // An Idempotency-Key needs the digest of the whole.
    const input = 'file' in body ? { bytes: await bytesOf(body) } : { ...body, content: body.content ?? '' }
    const file = await once((attempt) => createFile(deps, scope, params.path, input, attempt))
    return reply(201, file.is_directory || 'bytes' in input ? file : withContent(file, input))
  })
  handle(fileEndpoints.update, async ({ actor, params, body }) => {
    const scope = scopeOf(actor, params.session_id)
    if ('file' in body) return reply(200, await updateFile(deps, scope, params.path, { bytes: await bytesOf(body) }))
    return reply(200, withContent(await updateFile(deps, scope, params.path, body), body))
  })
  handle(fileEndpoints.delete, async ({ actor, params, query }) => {
    const isRecursive = query.recursive
    const deleted = await deleteFile(deps, scopeOf(actor, params.session_id), params.path, { isRecursive })
    return reply(200, { deleted })
  })
}

/** Headers with which a file is only data: a page of it runs nothing here, and has no origin. */
const AS_DATA = {
  'Cache-Control': 'private, no-cache',
  'Content-Security-Policy': "sandbox; default-src 'none'",
}

const serve = (
  ctx: Context,
  { info, encoding, contentId, chunks }: OpenedFile,
  disposition: 'inline' | 'attachment',
): ServedFile => ({
  contentType: typeOfName(ctx, info.name, encoding === 'text'),
  sizeBytes: info.size_bytes,
  etag: contentId,
  name: info.name,
  disposition,
  read: (start, end) => partOf(chunks, start, end),
})

/** Yields the bytes from `start` up to `end`. A file is small enough to skip what precedes them. */
async function* partOf(chunks: AsyncIterable<Uint8Array>, start: number, end: number): AsyncGenerator<Uint8Array> {
  let at = 0
  for await (const chunk of chunks) {
    const part = chunk.subarray(Math.max(start - at, 0), Math.max(end - at, 0))
    if (part.length > 0) yield part
    at += chunk.length
    if (at >= end) return
  }
}

/** Adds the content that a request has written. It is not stored with an Idempotency-Key, which has the same request. */
const withContent = (file: FileInfo, { content, encoding }: UpdateFileRequest): SessionFile =>
  typeof content === 'string' && content.length <= ECHOED_CHARACTERS
    ? { ...file, content, encoding: encoding ?? 'text' }
    : file

async function* asPage<T>(items: T[]): AsyncGenerator<T[]> {
  yield items
}
