import { textOf } from '../../../contract/messages.ts'
import type { Translation } from '../events.ts'
import type { CompletionRequest } from './endpoints.ts'
import type { Piece } from './translate.ts'

/** Returns the output schema that a request names. Undefined for an answer in words. */
export function schemaOf({ response_format: format }: CompletionRequest): Record<string, unknown> | undefined {
  if (format?.type === 'json_object') return { type: 'object' }
  return format?.type === 'json_schema' ? (format.json_schema?.schema ?? { type: 'object' }) : undefined
}

/** Makes the turn's output the only text of its answer, since clients parse the whole. */
export function withOutputOnly(pieces: Translation<Piece>): Translation<Piece> {
  let last = ''
  return {
    begin: () => pieces.begin(),
    event: (event) => {
      const given = pieces.event(event)
      if (event.type === 'output.message.completed') last = textOf(event.data.message.content)
      if (event.type === 'output.message.completed' || event.type === 'output.message.delta')
        return given.filter(({ type }) => type !== 'content')
      if (event.type !== 'turn.completed') return given
      const { output } = event.data
      return [{ type: 'content', text: output ? JSON.stringify(output) : last }, ...given]
    },
    pause: () => pieces.pause(),
    get isOver() {
      return pieces.isOver
    },
  }
}
