import type { InputContentPart } from '../../../contract/messages.ts'

/** Inputs of targets as stored and presented. Ids have their wire form. */
export type SessionMessageInput = ({ session_id: string } | { agent_id: string }) & {
  message: string | { content: InputContentPart[] }
}

/** Each header value is `***` here; the values have their own column. */
export type HttpRequestInput = {
  url: string
  method: string
  headers: Record<string, string>
  /** A string is sent unchanged, anything else as JSON. Absent: no body. */
  body?: unknown
}
