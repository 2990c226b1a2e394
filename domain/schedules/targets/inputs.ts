import type { InputContentPart } from '../../../contract/messages.ts'

/** Inputs of targets as they are stored and answered. Ids have their form on the wire. */
export type SessionMessageInput = ({ session_id: string } | { agent_id: string }) & {
  message: string | { content: InputContentPart[] }
}

/** The value of each header is `***` here; the values are in a column of their own. */
export type HttpRequestInput = {
  url: string
  method: string
  headers: Record<string, string>
  /** A string is sent as it is, anything else as JSON. Absent: no body. */
  body?: unknown
}
