import type { ImageUploadResponse } from '../../../contract/images.ts'
import type { SessionId } from '../../../contract/kit/ids.ts'
import type { Actor } from '../../kit/actor.ts'
import { createOnce } from '../../kit/create-once.ts'
import type { CreationAttempt } from '../../kit/idempotency-keys.ts'
import { newUuid } from '../../kit/ids.ts'
import type { Deps } from '../deps.ts'
import { readWhole } from './chunks.ts'
import { decoding } from './decoder.ts'
import { type Examined, examineImage } from './examine.ts'
import { type ImageRow, INFO, presentUpload } from './present.ts'
import { checkQuota, withImagesLocked } from './quota.ts'
import { type ArrivingFile, type Received, receiveImage } from './receive.ts'

type Upload = {
  file: ArrivingFile
  sessionId: SessionId | undefined
  /** Whether the request has an Idempotency-Key. Its image may exist already. */
  isKeyed: boolean
}
type Once = <T>(create: (attempt: CreationAttempt) => Promise<T>) => Promise<T>

/**
 * Stores an image while it arrives, decodes it, and then makes it visible. Only then is it known whether an earlier run
 * of the request has an image, because `once` needs the whole file. Throws `invalid`, `conflict` and `too_many`.
 */
export async function uploadImage(
  deps: Deps,
  actor: Actor,
  { file, sessionId, isKeyed }: Upload,
  once: Once,
): Promise<ImageUploadResponse> {
  const id = newUuid()
  try {
    const received = await receiveImage(deps, actor, { id, notedSessionId: sessionId ?? null, isKeyed }, file)
    const examined = await decoding(await deps.owners.ownerOf(actor.organizationId), UNENDING, () =>
      examine(deps, id, received),
    )
    return await once(async (attempt) =>
      presentUpload(await complete(deps, actor, id, { ...received, ...examined }, attempt)),
    )
  } finally {
    await discardUnfinished(deps, id)
  }
}

/** An upload is examined even if its client disconnects. */
const UNENDING = new AbortController().signal

async function examine(deps: Deps, id: string, { contentType, sizeBytes }: Received): Promise<Examined> {
  const bytes = await readWhole(deps, id, sizeBytes)
  if (bytes === undefined) throw new Error('The bytes of an upload are gone.')
  return await examineImage(bytes, contentType).finally(() => free(bytes))
}

/** Frees a large buffer's memory at once. The garbage collector would keep some of the latest ones. */
const free = ({ buffer }: Buffer<ArrayBuffer>): void => void buffer.transfer(0)

type Completed = Received & Examined

function complete(
  deps: Deps,
  { organizationId }: Actor,
  id: string,
  { sizeBytes, width, height, thumbnail }: Completed,
  attempt: CreationAttempt,
): Promise<ImageRow> {
  const requestId = attempt.uuid ?? null
  const data = { sizeBytes, width, height, thumbnail: new Uint8Array(thumbnail), requestId, completedAt: new Date() }
  return createOnce(attempt, {
    find: (uuid) => deps.db.image.findFirst({ where: { requestId: uuid, organizationId }, select: INFO }),
    insert: () =>
      withImagesLocked(deps, organizationId, async (tx) => {
        if (requestId !== null && (await tx.image.count({ where: { requestId } })) > 0) return undefined
        await checkQuota(deps, tx, organizationId, sizeBytes)
        return tx.image.update({ where: { id }, data, select: INFO })
      }),
  })
}

/** Deletes the image unless it is complete. If that fails, it is deleted later. */
async function discardUnfinished(deps: Deps, id: string): Promise<void> {
  await deps.db.image.deleteMany({ where: { id, completedAt: null } }).catch((error: unknown) => {
    deps.log.warn({ err: error, imageId: id }, 'upload not removed')
  })
}
