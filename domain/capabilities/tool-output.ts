import type { ContentPart } from '../../contract/messages.ts'

/** Result of a tool. `value` is any JSON value; the model gets it as JSON text, followed by the images. */
export type ToolOutput = { value: unknown; images?: Extract<ContentPart, { type: 'image' }>[] }
