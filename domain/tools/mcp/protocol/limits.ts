const KiB = 1024
const MiB = 1024 * KiB

/** Time limits of the client, in milliseconds. Tests replace them. */
export type McpTimes = {
  /** Limit of a discovery: connecting and all pages. */
  discover: number
  /** Limit of opening a connection for a call. */
  connect: number
  /** Time that a call may take without progress. */
  call: number
  /** Time that a call may take with progress. */
  callWithProgress: number
  /** Time that the result of a call is waited for once the server has been told that the user cannot be asked at once. */
  asked: number
  /** Time after which an unused connection is closed. */
  idle: number
  /** Time that a server has to take note that its session ends. */
  goodbye: number
  /** Shortest time between two attempts to open a stream again that has broken off. */
  reconnect: number
  /** Shortest time between two reports that the tools have changed. */
  changes: number
  /** Pause before a call is repeated for a server that asked for that, and asked nothing else. */
  again: number
}

export const TIMES: McpTimes = {
  discover: 30_000,
  connect: 30_000,
  call: 60_000,
  callWithProgress: 600_000,
  asked: 5_000,
  idle: 60_000,
  goodbye: 2_000,
  reconnect: 500,
  changes: 1_000,
  again: 250,
}

/** Size limit of one answer, after decompression. A result has at most 4 MiB of images in base64. */
export const MAX_ANSWER_BYTES = 8 * MiB
/** Limits of what parsing an answer, or an event of a stream, may cost. A key counts like a value. */
export const MAX_PARTS = 100_000
export const MAX_DEPTH = 256
/** Lines of a stream. An event has two to four, and a long one is opened again. */
export const MAX_LINES = 50_000
/** Answers to requests of a server on a connection, its questions and signs of life. */
export const MAX_ANSWERS = 300
/** How often the stream of a session is opened again, and the bytes of a connection that answer no call. */
export const MAX_REOPENINGS = 5
export const MAX_UNASKED_BYTES = 8 * MiB
export const MAX_REQUEST_BYTES = 8 * MiB
export const MAX_CONNECTIONS = 500
/** More than all connections with their streams and calls, so that no call waits for a socket. */
export const MAX_SOCKETS_PER_ORIGIN = 4096

/** Limits of a discovery. */
export const MAX_LIST_BYTES = 4 * MiB
export const MAX_PAGES = 64
export const MAX_TOOLS = 512
export const MAX_TOOLS_BYTES = 256 * KiB
export const MAX_LEFT_OUT = 100
export const MAX_INSTRUCTIONS_BYTES = 8 * KiB
export const MAX_PROTOCOL_BYTES = 32 * KiB

/** Limits of questions to the user. */
export const MAX_ROUNDS = 10
export const MAX_QUESTIONS = 10
export const MAX_MESSAGE_BYTES = 4 * KiB
export const MAX_SCHEMA_BYTES = 16 * KiB
export const MAX_STATE_BYTES = 64 * KiB
