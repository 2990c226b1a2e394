import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { Protocol } from './protocol.ts'
import { type Block, pickOptions } from './provider-data.ts'

type TextBlock = Exclude<Block, { type: 'tool_call' }>
/** Piece of a text or of thinking. All pieces of one block have the same id. */
type Piece = { id: string; delta?: string; providerMetadata?: SharedV4ProviderMetadata }

/** The blocks of an answer so far. */
export type Collected = {
  blocks: Block[]
  blockById: Map<string, TextBlock>
  callCount: number
  thinkingLength: number
}

export const nothingCollected = (): Collected => ({
  blocks: [],
  blockById: new Map(),
  callCount: 0,
  thinkingLength: 0,
})

/** Separates blocks of thinking in the message, which joins them into one text. */
const GAP = '\n\n'

/**
 * Adds a part of the answer, with the data that the provider needs back. Returns its thinking in the message's form.
 */
export function collectPart(collected: Collected, part: LanguageModelV4StreamPart, protocol: Protocol): string {
  switch (part.type) {
    case 'reasoning-start':
    case 'reasoning-delta':
    case 'reasoning-end':
      return collectThinking(collected, part, protocol)
    case 'text-start':
    case 'text-delta':
    case 'text-end':
      extendBlock(collected, 'text', part, protocol)
      return ''
    case 'tool-call': {
      const block: Block = { type: 'tool_call', index: collected.callCount++ }
      note(block, part.providerMetadata, protocol)
      collected.blocks.push(block)
      return ''
    }
    default:
      return ''
  }
}

/** Returns the thinking, with a gap before each block except the first. */
function collectThinking(collected: Collected, piece: Piece, protocol: Protocol): string {
  const { delta = '' } = piece
  const block = extendBlock(collected, 'thinking', piece, protocol)
  const isFurther = delta !== '' && block.length === delta.length && collected.thinkingLength > 0
  collected.thinkingLength += delta.length
  if (!isFurther || block.type !== 'thinking') return delta
  block.gap = GAP.length
  return GAP + delta
}

function extendBlock(
  { blocks, blockById }: Collected,
  type: TextBlock['type'],
  { id, delta = '', providerMetadata }: Piece,
  protocol: Protocol,
): TextBlock {
  const block: TextBlock = blockById.get(id) ?? { type, length: 0 }
  if (!blockById.has(id)) blocks.push(block)
  blockById.set(id, block)
  block.length += delta.length
  note(block, providerMetadata, protocol)
  return block
}

function note(block: Block, metadata: SharedV4ProviderMetadata | undefined, protocol: Protocol): void {
  const options = pickOptions(metadata, protocol.optionsKey, protocol.returnedFields[block.type])
  if (options !== undefined) block.options = options
}

/** Returns the last signature of thinking, for the providers that sign it. */
export function lastSignature({ blocks }: Collected, { optionsKey }: Protocol): string | undefined {
  const signatures = blocks.flatMap((block) => {
    const { signature, thoughtSignature } = (block.type === 'thinking' && block.options?.[optionsKey]) || {}
    return [signature, thoughtSignature].filter((value) => typeof value === 'string')
  })
  return signatures.at(-1)
}
