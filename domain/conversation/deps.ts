import type { FairQueue } from '../../lib/fair-queue.ts'
import type { Deps as Below } from '../tools/deps.ts'
import type { ConversationCache } from './conversation-cache.ts'
import type { ImageCache } from './image-cache.ts'

export type Deps = Below & {
  /** Beginnings of the conversations in which turns lately began. */
  conversations: ConversationCache
  /** Images as models were lately given them. */
  images: ImageCache
  /** Queue of the process for loading and scaling images of messages. */
  imageLoads: FairQueue
}
