import type { Message } from '../../contract/messages.ts'
import { createBoundedCache } from '../../lib/bounded-cache.ts'
import type { ProviderData } from '../models/llm/model.ts'
import type { CallSecret } from '../tools/call-secrets/places.ts'

/** A message as its event holds it, with what only the model is given. */
export type GivenMessage = {
  message: Message
  providerData: ProviderData | undefined
  /** Places of the secrets that are left out of the message. */
  secrets: readonly CallSecret[] | undefined
}

/**
 * The messages of all turns whose own message has a sequence up to `through`. These turns have ended, so nothing is
 * added to them. `length` is the number of characters of their events as JSON, `sizeBytes` about what they take here.
 */
export type Beginning = { through: number; messages: readonly GivenMessage[]; length: number; sizeBytes: number }

/** Beginnings of conversations, by the session's id, so that each turn reads only what has come since. */
export type ConversationCache = {
  get(sessionId: string): Beginning | undefined
  set(sessionId: string, beginning: Beginning): void
  delete(sessionId: string): void
}

const MAX_BYTES = 64 * 1024 * 1024
/** Size limit of one conversation: thousands of short messages. */
const MAX_CONVERSATION_BYTES = 8 * 1024 * 1024
/** Number of messages from which on a conversation is kept. Few are read as fast as none. */
const MIN_MESSAGES = 50
const TTL_MS = 10 * 60_000

/**
 * Creates a cache of a process. Beyond 64 MiB it forgets the conversations that were not used for the longest time, and
 * with each new one those in which no turn began for 10 minutes.
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
