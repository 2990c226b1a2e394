import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import { endWithin, STALLED_MS, writeInPieces } from './back-pressure.ts'
import { RequestError } from './errors.ts'

/** Bytes that a client may request as a whole or in part, and need not download again while they are unchanged. */
export type ServedFile = {
  contentType: string
  sizeBytes: number
  /** Identifies the bytes, such as a digest or a version; without quotes. Different bytes must have different ones. */
  etag: string
  /** File name under which a browser saves it. */
  name?: string
  /** Display in the browser (`inline`), only for types that execute nothing, or download. Default: attachment. */
  disposition?: 'inline' | 'attachment'
  /** Reads the bytes from `start` up to but excluding `end`, in chunks of any size. */
  read(start: number, end: number): AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

type Part = { start: number; end: number }

export type SendFileOptions = { headers?: Record<string, string> | undefined; stalledMs?: number }

/**
 * Answers with a file: 200, 206 with the requested range, or 304 when the client has it already. Throws RequestError
 * 416. Reads as fast as the client takes it; a read that fails after the answer has begun closes the connection.
 */
export async function sendFile(
  ctx: Context,
  log: Logger,
  file: ServedFile,
  { headers = {}, stalledMs = STALLED_MS }: SendFileOptions = {},
): Promise<undefined> {
  ctx.status = 200
  ctx.set({ ...headers, ETag: `"${file.etag}"`, 'Accept-Ranges': 'bytes' })
  // RFC 9110, 13.2.2: a client that already has the bytes gets 304, whatever range it requests.
  if (hasAlready(ctx, file)) {
    ctx.status = 304
    return
  }
  const part = partOf(ctx, file)
  describe(ctx, file, part)
  await sendChunks(ctx, log, readPart(file, part ?? { start: 0, end: file.sizeBytes }), stalledMs)
}

/** File whose size is not known before it has been sent. */
export type Download = Pick<ServedFile, 'contentType' | 'name'> & { chunks: AsyncGenerator<Uint8Array> }

/** Answers with a file for a browser to save. */
export async function sendDownload(
  ctx: Context,
  log: Logger,
  { contentType, name, chunks }: Download,
): Promise<undefined> {
  ctx.status = 200
  ctx.attachment(name)
  ctx.set('Content-Type', contentType)
  await sendChunks(ctx, log, chunks, STALLED_MS)
}

async function sendChunks(
  ctx: Context,
  log: Logger,
  chunks: AsyncGenerator<Uint8Array>,
  stalledMs: number,
): Promise<void> {
  if (ctx.method === 'HEAD') return
  try {
    // The first chunk is read before the answer begins, so that a failure can still be reported.
    const first = await chunks.next()
    ctx.respond = false
    await send(ctx.res, first, chunks, stalledMs).catch((error: Error) => {
      log.warn({ err: error, requestId: ctx.state.requestId }, 'file broken off')
      ctx.res.destroy()
    })
  } finally {
    await chunks.return(undefined)
  }
}

const PLAIN_TEXT = 'text/plain; charset=utf-8'

/**
 * Returns the content type of a file name. Scripts are sent as plain text: a page of this origin may run scripts of this
 * origin, but with `nosniff` no text. Content that is not UTF-8 is sent without a character set.
 */
export function typeOfName(ctx: Context, name: string, isText: boolean): string {
  const dot = name.lastIndexOf('.')
  ctx.type = dot < 0 ? '' : name.slice(dot)
  const type = ctx.response.get('Content-Type')
  // Koa returns undefined although its types say ''.
  if (!type) return isText ? PLAIN_TEXT : 'application/octet-stream'
  if (/(java|ecma)script|wasm/.test(type)) return isText ? PLAIN_TEXT : 'application/octet-stream'
  return isText ? type : type.replace(/;.*/, '')
}

/** Reads If-None-Match itself: Koa does not, next to the `Cache-Control: no-cache` that fetch adds to it. */
const hasAlready = (ctx: Context, { etag }: ServedFile): boolean =>
  ctx
    .get('If-None-Match')
    .split(',')
    .some((version) => ['*', `"${etag}"`, `W/"${etag}"`].includes(version.trim()))

function describe(ctx: Context, file: ServedFile, part: Part | undefined): void {
  const { sizeBytes, contentType, name, disposition = 'attachment' } = file
  ctx.attachment(name?.toWellFormed(), { type: disposition })
  ctx.set({ 'Content-Type': contentType, 'X-Content-Type-Options': 'nosniff' })
  ctx.length = part === undefined ? sizeBytes : part.end - part.start
  if (part === undefined) return
  ctx.status = 206
  ctx.set('Content-Range', `bytes ${part.start}-${part.end - 1}/${sizeBytes}`)
}

/**
 * Returns the requested range, or undefined for the whole file. Several ranges, or a range of an older version, also
 * get the whole file.
 */
function partOf(ctx: Context, { sizeBytes, etag }: ServedFile): Part | undefined {
  const version = ctx.get('If-Range')
  if (ctx.method !== 'GET' || (version !== '' && version !== `"${etag}"`)) return undefined
  const [, from, to] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(ctx.get('Range')) ?? []
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined
  // Without a start the range is a suffix: the last `to` bytes.
  const start = from === '' ? Math.max(sizeBytes - Number(to), 0) : Number(from)
  const end = from === '' || to === '' ? sizeBytes : Math.min(Number(to) + 1, sizeBytes)
  if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined
  if (start < end) return { start, end }
  throw new RequestError(416, `Range: must begin within the file, which has ${sizeBytes} bytes`, {
    'Content-Range': `bytes */${sizeBytes}`,
  })
}

/** Yields the bytes of a part. Throws when their number is not the announced one. */
async function* readPart(file: ServedFile, { start, end }: Part): AsyncGenerator<Uint8Array> {
  let left = end - start
  for await (const chunk of file.read(start, end)) {
    left -= chunk.length
    if (left < 0) break
    yield chunk
  }
  if (left !== 0) throw new Error(`A file's bytes from ${start} to ${end} were read as ${end - start - left}`)
}

async function send(
  res: ServerResponse,
  first: IteratorResult<Uint8Array>,
  rest: AsyncGenerator<Uint8Array>,
  stalledMs: number,
): Promise<void> {
  for (let next = first; !next.done; next = await rest.next()) {
    if (!(await writeInPieces(res, next.value, { stalledMs }))) return void res.destroy()
  }
  endWithin(res, stalledMs)
}
