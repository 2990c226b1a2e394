import type { SseStreams } from '../http/sse.ts'

/** Settings of the API that faces need. */
export type FaceOptions = { streams: SseStreams; apiPrefix: string; version: string }
