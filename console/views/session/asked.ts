import type { Call } from './conversation.ts'

/** Call that waits for a person. */
export type Asked = Pick<Call, 'id' | 'name' | 'arguments' | 'kind'> & { title?: string | undefined }

/** Sends the result of a call that waits. */
export type Submit = (result: { result?: unknown; error?: string }) => Promise<void>
