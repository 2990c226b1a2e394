import type { IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Context } from 'koa'
import type { RawUpload } from '../../contract/kit/endpoint.ts'
import { rejectOnAbort } from '../../lib/reject-on-abort.ts'
import { arrivalOf } from './arrival.ts'
import { hasBody, refuseTinyPieces } from './body.ts'
import { RequestError } from './errors.ts'
import { createReader, type ReceivedUpload, type UploadReading } from './multipart.ts'

/** Reports whether the request has a body that is not JSON. One without a content type is JSON only when it is empty. */
export const isRaw = (ctx: Context): boolean =>
  ctx.request.type === '' ? hasBody(ctx) : ctx.request.type !== 'application/json'

/** Returns a raw body as a file that is still arriving. Throws RequestError 413 or 415. */
export function readRaw(
  ctx: Context,
  { maxBytes, inMemory }: RawUpload,
  { hold, recheck }: UploadReading,
): ReceivedUpload {
  if (ctx.request.type === 'multipart/form-data') {
    throw new RequestError(
      415,
      'The body must be the bytes of the file themselves, not a form (curl --data-binary @file)',
    )
  }
  if ((ctx.get('Content-Encoding') || 'identity') !== 'identity') {
    throw new RequestError(415, 'The content encoding of the body is not supported')
  }
  if ((ctx.request.length ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const arrival = arrivalOf(ctx)
  arrival.allowUpload()
  const count = (bytes: number) => (inMemory ? hold.add(bytes, 'plain') : undefined)
  const pieces = takePieces(ctx.req, maxBytes, arrival.signal)
  const { chunks, digest } = createReader(pieces, arrival.signal, { count, end: recheck })
  return {
    fields: undefined,
    file: { name: undefined, contentType: ctx.request.type, chunks },
    fingerprint: () => ['raw', digest()],
    discard: arrival.dropRest,
  }
}

/** Reads an upload whose operation has it in memory. */
export const bytesOf = ({ file }: Pick<ReceivedUpload, 'file'>): Promise<Buffer> => buffer(file.chunks)

const tooLarge = (maxBytes: number) => new RequestError(413, `The request body must be at most ${maxBytes} bytes`)

async function* takePieces(req: IncomingMessage, maxBytes: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const pieces = req.iterator({ destroyOnReturn: false })
  let [bytes, count] = [0, 0]
  try {
    for (;;) {
      const next = await rejectOnAbort(signal, pieces.next())
      if (next.done) return
      bytes += next.value.length
      refuseTinyPieces(++count, bytes)
      if (bytes > maxBytes) throw tooLarge(maxBytes)
      yield next.value
    }
  } catch (error) {
    // Node reports a client that has disconnected before the signal does.
    throw error instanceof RequestError ? error : new RequestError(400, 'The request broke off')
  } finally {
    // Not awaited: it waits for a piece that may never come.
    pieces.return?.().catch(() => {})
  }
}
