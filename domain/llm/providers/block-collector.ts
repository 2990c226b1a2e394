import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import type { ProviderData } from '../model.ts'
import type { Protocol } from './protocol.ts'
import { type Block, pickOptions, toProviderData } from './provider-data.ts'

type TextBlock = Exclude<Block, { type: 'tool_call' }>
/** Piece of a text or of thinking. All pieces of one, from its start to its end, have the same id. */
type Piece = { id: string; delta?: string; providerMetadata?: SharedV4ProviderMetadata }

/** Separates blocks of thinking in the message, which has them in one text. */
const GAP = '\n\n'

export type BlockCollector = ReturnType<typeof createBlockCollector>

/** Collects the blocks of one answer, with what the provider needs back. */
export function createBlockCollector(protocol: Protocol) {
  const blocks: Block[] = []
  const blockById = new Map<string, TextBlock>()
  let callCount = 0
  let thinkingLength = 0

  function note(block: Block, metadata: SharedV4ProviderMetadata | undefined): void {
    const options = pickOptions(metadata, protocol.optionsKey, protocol.returnedFields[block.type])
    if (options !== undefined) block.options = options
  }

  function extend(type: TextBlock['type'], { id, delta = '', providerMetadata }: Piece): TextBlock {
    const block: TextBlock = blockById.get(id) ?? { type, length: 0 }
    if (!blockById.has(id)) blocks.push(block)
    blockById.set(id, block)
    block.length += delta.length
    note(block, providerMetadata)
    return block
  }

  /** Returns the text of the thinking as the message has it: with a gap before each further block. */
  function think(piece: Piece): string {
    const { delta = '' } = piece
    const block = extend('thinking', piece)
    const isFurther = delta !== '' && block.length === delta.length && thinkingLength > 0
    thinkingLength += delta.length
    if (!isFurther || block.type !== 'thinking') return delta
    block.gap = GAP.length
    return GAP + delta
  }

  function addCall({ providerMetadata }: Extract<LanguageModelV4StreamPart, { type: 'tool-call' }>): void {
    const block: Block = { type: 'tool_call', index: callCount++ }
    note(block, providerMetadata)
    blocks.push(block)
  }

  /** Adds a part of the answer, and returns the thinking in it. */
  function add(part: LanguageModelV4StreamPart): string {
    switch (part.type) {
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        return think(part)
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        extend('text', part)
        return ''
      case 'tool-call':
        addCall(part)
        return ''
      default:
        return ''
    }
  }

  return {
    add,
    toData: (source: string): ProviderData | undefined => toProviderData(source, blocks),
    signature: (): string | undefined => lastSignature(blocks, protocol),
  }
}

/** Returns the last signature of thinking, for the providers that sign it. */
function lastSignature(blocks: Block[], { optionsKey }: Protocol): string | undefined {
  const signatures = blocks.flatMap((block) => {
    const { signature, thoughtSignature } = (block.type === 'thinking' && block.options?.[optionsKey]) || {}
    return [signature, thoughtSignature].filter((value) => typeof value === 'string')
  })
  return signatures.at(-1)
}
