import type { FairQueue } from '../../lib/fair-queue.ts'
import type { Deps as Below } from '../tools/deps.ts'
import type { ConversationCache } from './conversation-cache.ts'
import type { ImageCache } from './image-cache.ts'

export type Deps = Below & {
  /** Beginnings of conversations with recent turns. */
  conversations: ConversationCache
  /** Images as models recently received them. */
  images: ImageCache
  /** Queue of this process for loading and scaling images of messages. */
  imageLoads: FairQueue
}
