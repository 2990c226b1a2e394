import { type ContentPart, textOf } from '../../../contract/messages.ts'
import type { RequestedCall } from '../../../contract/turns.ts'
import type { Frame, Translation, TurnEvent } from '../events.ts'
import { createSentText } from '../sent-text.ts'
import type { UIPart } from './endpoints.ts'

/** Major version of the AI SDK whose chunks are sent. */
export type Version = '5' | '6' | '7'

/** Chunk of the UI message stream protocol. */
type Chunk = { type: string } & Record<string, unknown>

export type TranslationOptions = {
  turnId: string
  version: Version
  /** Sends the text of a step once it is complete, because the version cannot take back the text of a failed attempt. */
  holdsText: boolean
  /** Sequence up to which the turn's requests to its client have been answered. */
  answeredUntil: number
  /** Results of client tools that the client has given, and waits with. */
  given?: UIPart[] | undefined
  /** Ids of the calls that waited for approval before the first event. */
  approvals?: string[] | undefined
}

/** Returns the id of the one UI message in which a client collects a turn, over all its steps and streams. */
export const uiMessageId = (turnId: string): string => `msg_${turnId.replace('turn_', '')}`

type Kind = 'text' | 'reasoning'

/** Makes the chunks of texts: each has a start, deltas and an end, and one is open at a time. */
function createTexts() {
  let open: { id: string; kind: Kind } | undefined
  const sent = { text: createSentText(), reasoning: createSentText() }
  /** Whether this attempt continues the texts of another. */
  let isContinued = false
  let count = 0

  const close = (): Chunk[] => {
    const closed = open
    open = undefined
    return closed === undefined ? [] : [{ type: `${closed.kind}-end`, id: closed.id }]
  }
  const show = (kind: Kind, delta: string): Chunk[] => {
    if (delta === '') return []
    const chunks = open?.kind === kind ? [] : close()
    if (open === undefined) {
      count++
      open = { id: `${kind}_${count}`, kind }
      chunks.push({ type: `${kind}-start`, id: open.id })
    }
    return [...chunks, { type: `${kind}-delta`, id: open.id, delta }]
  }
  const closeIf = (kind: Kind): Chunk[] => (open?.kind === kind ? close() : [])
  /** Leaves out thoughts that differ from what the attempt before thought, or come after its text. */
  const think = (added: string | undefined): Chunk[] =>
    added === undefined || (isContinued && sent.text.text !== '') ? [] : show('reasoning', added)
  const say = (added: string | undefined): Chunk[] | undefined =>
    added === undefined ? undefined : show('text', added)
  return {
    close,
    think: (thoughtsSoFar: string): Chunk[] => think(sent.reasoning.grow(thoughtsSoFar)),
    endThinking: (whole: string): Chunk[] => [...think(sent.reasoning.complete(whole)), ...closeIf('reasoning')],
    /** Shows more of a text; undefined if other text has been shown. */
    say: (textSoFar: string): Chunk[] | undefined => say(sent.text.grow(textSoFar)),
    /** Shows the rest of a text and ends it; undefined if other text has been shown. */
    endText: (whole: string): Chunk[] | undefined => {
      const rest = say(sent.text.complete(whole))
      return rest && [...rest, ...closeIf('text')]
    },
    /** Continues the texts of the attempt before. */
    resume: (): void => {
      isContinued = true
    },
    /** Begins the texts of a step, or begins them anew where the client drops them. */
    reset: (): void => {
      open = undefined
      isContinued = false
      sent.text.reset()
      sent.reasoning.reset()
    },
  }
}

const CHANGED =
  'The answer began anew with other text after a failure, so only a part of it is shown; load the chat again when it is done'

/** Translates the events of one turn into chunks. */
export function createTranslation(options: TranslationOptions): Translation<Frame> {
  const { version, holdsText } = options
  const texts = createTexts()
  const calls = new Map<string, Record<string, unknown>>()
  const approvals = new Set(options.approvals)
  let isStepOpen = false
  let hasAttempt = false
  let isOver = false

  const endStep = (): Chunk[] => {
    const chunks = texts.close()
    if (isStepOpen) chunks.push({ type: 'finish-step' })
    isStepOpen = false
    return chunks
  }
  const end = (...last: Chunk[]): Chunk[] => {
    isOver = true
    return [...endStep(), ...last]
  }
  const startStep = (): Chunk[] => {
    const chunks = [...endStep(), { type: 'start-step' }]
    texts.reset()
    isStepOpen = true
    hasAttempt = false
    return chunks
  }
  /** Takes back the text of an attempt before in this step, or has this one continue it. */
  const startAttempt = (): Chunk[] => {
    const isAnother = hasAttempt
    hasAttempt = true
    if (!isAnother) return []
    if (version !== '7' || holdsText) {
      texts.resume()
      return []
    }
    texts.reset()
    return [{ type: 'reset-step' }]
  }
  const unlessChanged = (chunks: Chunk[] | undefined): Chunk[] => chunks ?? end({ type: 'error', errorText: CHANGED })
  const ask = (call: RequestedCall): Chunk[] => {
    if (call.kind === 'client_tool') {
      // A question of a tool is not among the model's calls.
      return calls.has(call.id) ? [] : inputOf({ ...call, isOurs: false })
    }
    approvals.add(call.id)
    // A turn that asks for budget has no call of a model for it.
    const shown = calls.has(call.id) ? [] : inputOf({ ...call, isOurs: true })
    if (version === '5') return [...shown, approvalData(call)]
    return [...shown, { type: 'tool-approval-request', approvalId: call.id, toolCallId: call.id }]
  }
  const finishForClient = () => end({ type: 'finish', finishReason: 'tool-calls' })

  const chunksOf = (event: TurnEvent): Chunk[] => {
    const { type, data } = event
    switch (type) {
      case 'reason.started':
        return startStep()
      case 'output.message.started':
        return startAttempt()
      case 'reason.thinking.delta':
        return holdsText ? [] : texts.think(data.accumulated)
      case 'reason.thinking.completed':
        return holdsText ? [] : texts.endThinking(data.thinking)
      case 'output.message.delta':
        return holdsText ? [] : unlessChanged(texts.say(data.accumulated))
      case 'output.message.completed': {
        const { content, thinking } = data.message
        for (const part of content) if (part.type === 'tool_call') calls.set(part.id, part.arguments)
        const held = holdsText && thinking ? texts.endThinking(thinking) : []
        return [...held, ...unlessChanged(texts.endText(textOf(content)))]
      }
      case 'act.started':
        return data.tool_calls.flatMap(({ id, name, policy }) =>
          inputOf({ id, name, arguments: calls.get(id) ?? {}, isOurs: policy !== 'client_side' }),
        )
      case 'tool.started':
        approvals.delete(data.tool_call.id)
        return []
      case 'tool.completed': {
        const isDenied = approvals.delete(data.tool_call_id) && data.status === 'error' && version !== '5'
        return isDenied ? [{ type: 'tool-output-denied', toolCallId: data.tool_call_id }] : outputOf(data)
      }
      case 'tool.call_requested': {
        const asked = data.tool_calls.flatMap(ask)
        return event.sequence > options.answeredUntil ? [...asked, ...finishForClient()] : asked
      }
      case 'turn.completed':
        return end({ type: 'finish', finishReason: finishReasonOf(data.finish_reason) })
      case 'turn.failed':
        return end({ type: 'error', errorText: data.error })
      case 'turn.cancelled':
        return end(version === '7' ? { type: 'finish', finishReason: 'interrupted' } : { type: 'abort' })
      default:
        return []
    }
  }

  const framed = (chunks: Chunk[]): Frame[] => {
    const frames = chunks.map((chunk) => ({ line: JSON.stringify(chunk) }))
    return isOver ? [...frames, { line: '[DONE]' }] : frames
  }
  return {
    begin: () => framed([{ type: 'start', messageId: uiMessageId(options.turnId) }]),
    event: (event) => framed(chunksOf(event)),
    pause: () => framed([...(options.given ?? []).flatMap(settled), ...finishForClient()]),
    get isOver() {
      return isOver
    },
  }
}

/**
 * Marks a client's result as one of a provider. Otherwise the client, whose other calls still wait, would find that
 * all of its own tools have results, and send them again after each stream.
 */
function settled({ state, toolCallId, output, errorText }: UIPart): Chunk[] {
  if (typeof toolCallId !== 'string') return []
  if (state === 'output-available')
    return [{ type: 'tool-output-available', toolCallId, output: output ?? null, providerExecuted: true }]
  if (state !== 'output-error') return []
  return [{ type: 'tool-output-error', toolCallId, errorText: errorText ?? '', providerExecuted: true }]
}

/** Asks for approval where the version has no chunk and no state for it. */
export const approvalData = ({ id, name, arguments: input }: RequestedCall): Chunk => ({
  type: 'data-approval',
  id,
  data: { toolCallId: id, toolName: name, input },
})

type GivenCall = { id: string; name: string; arguments: Record<string, unknown>; isOurs: boolean }

/** A client runs only the calls that are not marked as run by a provider. */
const inputOf = ({ id, name, arguments: input, isOurs }: GivenCall): Chunk[] => [
  {
    type: 'tool-input-available',
    toolCallId: id,
    toolName: name,
    input,
    ...(isOurs ? { providerExecuted: true } : {}),
  },
]

type Completed = Extract<TurnEvent, { type: 'tool.completed' }>['data']

function outputOf({ tool_call_id: toolCallId, status, result, error }: Completed): Chunk[] {
  if (status !== 'success') {
    return [{ type: 'tool-output-error', toolCallId, errorText: error ?? `The call ended as ${status}.` }]
  }
  const parts = result ?? []
  return [{ type: 'tool-output-available', toolCallId, output: outputValue(parts) }, ...parts.flatMap(fileOf)]
}

/** Returns a result as a value, as messages have it. */
function outputValue(result: ContentPart[]): unknown {
  const text = result.find((part) => part.type === 'text')?.text
  if (text === undefined) return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Returns an image as a file of the message, in a chunk or in a part. */
export function fileOf(part: ContentPart): Chunk[] {
  if (part.type !== 'image') return []
  const mediaType = part.media_type ?? 'image/png'
  return [{ type: 'file', mediaType, url: part.url ?? `data:${mediaType};base64,${part.base64}` }]
}

function finishReasonOf(reason: string | null | undefined): string {
  if (reason == null) return 'stop'
  if (reason === 'length') return 'length'
  return reason === 'content_filter' ? 'content-filter' : 'other'
}
