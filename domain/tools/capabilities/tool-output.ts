import type { ContentPart } from '../../../contract/messages.ts'

/** Result of a tool. `value` is any JSON value; the model gets it as JSON text, followed by the images. */
export type ToolOutput = { value: unknown; images?: Extract<ContentPart, { type: 'image' }>[] }

/** Progress of a call, in a unit of the tool's choice. The message is one line of at most 1,000 characters. */
export type Progress = { progress: number; total?: number | undefined; message?: string | undefined }
