const KiB = 1024
const MiB = 1024 * KiB

/** Time limits of the client, in milliseconds. Tests replace them. */
export type McpTimes = {
  /** Limit of a discovery: connecting and all pages. */
  discover: number
  /** Limit of opening a connection for a call. */
  connect: number
  /** Maximum time of a call without progress. */
  call: number
  /** Maximum time of a call with progress. */
  callWithProgress: number
  /** Maximum time for the result of a call after the server was told that the user cannot be asked at once. */
  asked: number
  /** Time after which an unused connection is closed. */
  idle: number
  /** Time for a server to acknowledge the end of its session. */
  goodbye: number
  /** Minimum time between two attempts to reopen a broken stream. */
  reconnect: number
  /** Minimum time between two reports of changed tools. */
  changes: number
  /** Pause before a call is repeated at a server's request without questions. */
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
/** Limits of the cost of parsing an answer or an event. A key counts like a value. */
export const MAX_PARTS = 100_000
export const MAX_DEPTH = 256
/** Maximum lines of a stream. An event has two to four, and a long stream is reopened. */
export const MAX_LINES = 50_000
/** Maximum number of answers to a server's requests on a connection: questions and pings. */
export const MAX_ANSWERS = 300
/** Maximum number of reopenings of a session's stream, and of bytes of a connection that belong to no call. */
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

/** Limits of lists of resources and prompts, and of the content of one. */
export const MAX_ITEMS = 1_000
export const MAX_CONTENT_BYTES = MiB

/** Limits of questions to the user. */
export const MAX_ROUNDS = 10
export const MAX_QUESTIONS = 10
export const MAX_MESSAGE_BYTES = 4 * KiB
export const MAX_SCHEMA_BYTES = 16 * KiB
export const MAX_STATE_BYTES = 64 * KiB
