import { imageEndpoints } from '../../contract/images.ts'
import type { Deps } from '../../domain/deps.ts'
import { deleteImage } from '../../domain/session-data/images/delete.ts'
import { listImages } from '../../domain/session-data/images/list.ts'
import { type OpenedImage, openImageFile, readThumbnail } from '../../domain/session-data/images/read.ts'
import { uploadImage } from '../../domain/session-data/images/upload.ts'
import type { ServedFile } from '../http/file.ts'
import { type Handle, reply } from '../http/handle.ts'
import { answerList, linesOf } from '../http/json-list.ts'

/** Headers of an image, which never changes. */
const FOREVER = { 'Cache-Control': 'private, max-age=31536000, immutable' }

export function imageRoutes(handle: Handle, deps: Deps): void {
  const { upload } = imageEndpoints
  const file = { ...upload.multipart.file, maxBytes: deps.quotas.images.maxBytes }
  handle(imageEndpoints.list, async ({ actor, query, ctx }) =>
    answerList(ctx, deps.log, linesOf(listImages(deps, actor, query))),
  )
  handle({ ...upload, multipart: { file } }, async ({ actor, query, body, once, ctx }) => {
    const isKeyed = ctx.get('Idempotency-Key') !== ''
    return reply(201, await uploadImage(deps, actor, { file: body.file, sessionId: query.session_id, isKeyed }, once))
  })
  handle(imageEndpoints.get, async ({ actor, params }) =>
    reply(200, serve(params.image_id, await openImageFile(deps, actor, params.image_id)), FOREVER),
  )
  handle(imageEndpoints.thumbnail, async ({ actor, params }) =>
    reply(200, serve(params.image_id, await readThumbnail(deps, actor, params.image_id)), FOREVER),
  )
  handle(imageEndpoints.delete, async ({ actor, params }) => {
    await deleteImage(deps, actor, params.image_id)
    return reply(204, undefined)
  })
}

/** Its id identifies an image's bytes, as they never change. No accepted type can execute anything. */
const serve = (id: string, { contentType, filename, sizeBytes, read }: OpenedImage): ServedFile => ({
  ...{ contentType, sizeBytes, read },
  name: filename,
  etag: id,
  disposition: 'inline',
})
