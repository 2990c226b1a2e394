import { z } from 'zod'
import { DateTime, listOf, sizeBytes } from './kit/common.ts'
import { fileResponses, group } from './kit/endpoint.ts'
import { ImageId, NotedSessionId, wireId, wireUuid } from './kit/ids.ts'
import { limitUpTo, offset } from './kit/query.ts'

const UploadedImage = z.object({
  id: wireUuid,
  filename: z.string(),
  content_type: z.enum(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
  size_bytes: sizeBytes.min(1),
  created_at: DateTime,
})

export const ImageUploadResponse = UploadedImage.meta({ id: 'ImageUploadResponse' })
export type ImageUploadResponse = z.infer<typeof ImageUploadResponse>

const ImageMetadata = z
  .object({
    width: z.int().min(1).meta({ description: 'In pixels, as displayed: after the orientation has been applied.' }),
    height: z.int().min(1),
    session_id: wireId('session').optional().meta({ description: 'The session_id of the upload.' }),
  })
  .meta({ id: 'ImageMetadata' })

export const ImageInfo = UploadedImage.extend({ metadata: ImageMetadata }).meta({ id: 'ImageInfo' })
export type ImageInfo = z.infer<typeof ImageInfo>

/** Default of IMAGE_MAX_BYTES. */
export const MAX_IMAGE_BYTES = 20 * 1024 * 1024

const ofImage = z.object({ image_id: ImageId })

export const imageEndpoints = group(
  { tag: 'images', path: '/v1/images', access: 'member' },
  {
    list: {
      operationId: 'listImages',
      method: 'GET',
      summary: 'Lists images, newest first',
      query: z.object({ limit: limitUpTo(100, 50), offset }),
      responses: { 200: listOf(ImageInfo) },
    },
    upload: {
      operationId: 'uploadImage',
      method: 'POST',
      summary: 'Uploads an image',
      description:
        'PNG, JPEG, GIF or WebP, detected from its content, of at most 50 megapixels and 1,000 frames, and at most IMAGE_MAX_BYTES.',
      query: z.object({
        session_id: NotedSessionId.optional().meta({ description: 'Stored without checking that the session exists.' }),
      }),
      multipart: { file: { field: 'file', maxBytes: MAX_IMAGE_BYTES, tooLargeStatus: 400 } },
      creates: true,
      responses: { 201: ImageUploadResponse },
    },
    get: {
      operationId: 'getImage',
      method: 'GET',
      at: '/{image_id}',
      summary: 'Gets the bytes of an image',
      params: ofImage,
      responses: fileResponses('image/*', 'The image as it was uploaded.'),
    },
    thumbnail: {
      operationId: 'getThumbnail',
      method: 'GET',
      at: '/{image_id}/thumbnail',
      summary: 'Gets the thumbnail of an image',
      params: ofImage,
      responses: fileResponses('image/jpeg', 'A JPEG within 200×200 pixels; of an animation its first frame.'),
    },
    delete: {
      operationId: 'deleteImage',
      method: 'DELETE',
      at: '/{image_id}',
      summary: 'Deletes an image',
      description: 'Messages that contain it show a placeholder.',
      params: ofImage,
      responses: { 204: null },
    },
  },
)
