import type { Deps } from '../deps.ts'
import type { ReadParts, StoredEvent } from '../log/present.ts'
import { textBefore } from './event-queries.ts'

/**
 * Text of the message that a reader is in the middle of, kept so that pages need not read it again for `accumulated`.
 */
export type MessageTexts = {
  /** Returns the parts of an event; undefined if the text before it must be found first. */
  partsOf(event: StoredEvent): ReadParts | undefined
  /** Finds the text before a delta. Returns false when retention has deleted the event since it was read. */
  find(event: StoredEvent): Promise<boolean>
  clear(): void
  /** Returns the number of remembered characters. */
  length(): number
}

type Span = Pick<StoredEvent, 'execId' | 'type'>

const DELTAS = ['output.message.delta', 'reason.thinking.delta'] as const
const isDelta = ({ type }: StoredEvent): boolean => DELTAS.some((delta) => delta === type)
const keyOf = ({ execId, type }: Span): string => `${execId}/${type}`

export function createMessageTexts(deps: Deps): MessageTexts {
  const texts = new Map<string, string>()
  let textsOf: string | null = null

  /** Forgets every other message: at most one text is remembered. */
  const enterMessage = ({ execId }: StoredEvent) => {
    if (execId !== textsOf) texts.clear()
    textsOf = execId
  }
  const addDelta = (event: StoredEvent): ReadParts | undefined => {
    enterMessage(event)
    const before = texts.get(keyOf(event))
    if (before === undefined) return undefined
    const accumulated = before + String(event.data.delta)
    texts.set(keyOf(event), accumulated)
    return { accumulated }
  }
  return {
    partsOf: (event) => {
      if (isDelta(event)) return addDelta(event)
      if (event.type === 'output.message.started') {
        enterMessage(event)
        for (const type of DELTAS) texts.set(keyOf({ execId: event.execId, type }), '')
      }
      if (event.type === 'output.message.completed') texts.clear()
      return {}
    },
    find: async (event) => {
      const text = await textBefore(deps, event)
      if (text !== undefined) texts.set(keyOf(event), text)
      return text !== undefined
    },
    clear: () => texts.clear(),
    length: () => [...texts.values()].reduce((sum, text) => sum + text.length, 0),
  }
}
