export type ToolCall = { id: string; name: string; arguments: string }

/** One part of an answer. `signature` is whatever the protocol gives to be sent back with the part. */
export type ContentBlock =
  | { type: 'thinking'; deltas: string[]; signature?: string }
  /** Thinking that nobody may read. */
  | { type: 'redacted'; data: string }
  | { type: 'text'; deltas: string[]; signature?: string }
  | ({ type: 'call'; signature?: string } & ToolCall)

/** Content of an answer: either its blocks in their order, or thinking, text and calls in this order. */
export type Content = {
  blocks?: ContentBlock[]
  thinking?: string[]
  text?: string[]
  /** Tool calls, whose arguments arrive in fragments of three characters where the protocol has fragments. */
  toolCalls?: ToolCall[]
  finishReason?: string
  usage?: object
}

export function blocksOf({ blocks, thinking, text, toolCalls = [] }: Content): ContentBlock[] {
  return (
    blocks ?? [
      ...(thinking === undefined ? [] : [{ type: 'thinking' as const, deltas: thinking }]),
      ...(text === undefined ? [] : [{ type: 'text' as const, deltas: text }]),
      ...toolCalls.map((call) => ({ type: 'call' as const, ...call })),
    ]
  )
}

export const hasCalls = (content: Content): boolean => blocksOf(content).some(({ type }) => type === 'call')

export const fragmentsOf = (text: string): string[] => text.match(/[\s\S]{1,3}/g) ?? []
