import type { Message } from '../../contract/messages.ts'
import { createBoundedCache } from '../../lib/bounded-cache.ts'
import type { ProviderData } from '../models/llm/model.ts'
import type { CallSecret } from '../tools/call-secrets/places.ts'

/** A message as stored in its event, with the data that only the model receives. */
export type GivenMessage = {
  message: Message
  providerData: ProviderData | undefined
  /** Places of the secrets that the message omits. */
  secrets: readonly CallSecret[] | undefined
}

/**
 * The messages of all turns whose own message has a sequence up to `through`. These turns have ended, so no message
 * follows. `length` is the number of characters of their events as JSON, `sizeBytes` their approximate size in memory.
 */
export type Beginning = { through: number; messages: readonly GivenMessage[]; length: number; sizeBytes: number }

/** Beginnings of conversations, by the session's id, so that each turn reads only newer messages. */
export type ConversationCache = {
  get(sessionId: string): Beginning | undefined
  set(sessionId: string, beginning: Beginning): void
  delete(sessionId: string): void
}

const MAX_BYTES = 64 * 1024 * 1024
/** Size limit of one conversation: thousands of short messages. */
const MAX_CONVERSATION_BYTES = 8 * 1024 * 1024
/** Minimum number of messages of a cached conversation. Reading fewer is as fast as a cache hit. */
const MIN_MESSAGES = 50
const TTL_MS = 10 * 60_000

/**
 * Creates the cache of a process. Beyond 64 MiB it evicts the least recently used conversations; each insertion also
 * evicts conversations without a new turn for 10 minutes.
 */
export function createConversationCache(): ConversationCache {
  const cache = createBoundedCache<Beginning>(MAX_BYTES)
  return {
    get: cache.get,
    delete: cache.delete,
    set: (sessionId, beginning) => {
      const { messages, sizeBytes } = beginning
      if (messages.length < MIN_MESSAGES || sizeBytes > MAX_CONVERSATION_BYTES) cache.delete(sessionId)
      else cache.set(sessionId, beginning, { sizeBytes, ttlMs: TTL_MS })
    },
  }
}
