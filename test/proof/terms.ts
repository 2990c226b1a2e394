import type { Json } from '../support/http.ts'
import { textOf, turnOf, turnsOf } from '../support/record.ts'
import type { Event } from './model.ts'

const LEFT_OUT = ['output.message.started', 'output.message.delta', 'tool.progress']

/** Events of a record in the terms of the model. */
export function observed(events: Json[]): Event[] {
  const turns = turnsOf(events)
  return events
    .filter(({ type }) => !LEFT_OUT.includes(type))
    .map((event) => {
      const about = aboutOf(event)
      return { type: event.type, turn: turns.indexOf(turnOf(event)), ...(about !== undefined && { about }) }
    })
}

function aboutOf({ type, context, data }: Json): string | undefined {
  switch (type) {
    case 'input.message':
      return context.turn_id ? 'joins' : undefined
    case 'output.message.completed':
      return `${textOf(data.message)}${data.message.metadata?.interrupted ? ' interrupted' : ''}`
    case 'act.started':
    case 'tool.call_requested':
      return data.tool_calls.map(({ id }: Json) => id).join()
    case 'tool.started':
      return data.tool_call.id
    case 'tool.completed':
      return `${data.tool_call_id} ${data.status}`
    default:
      return undefined
  }
}

/** Writes events as lines, with calls that run at the same time in the order of their ids. */
export function compare(events: Event[]): string[] {
  const lines = events.map(({ type, turn, about = '' }) => `${turn} ${type} ${about}`.trim())
  const isCall = (line: string | undefined) => line !== undefined && / tool\.(started|completed) /.test(line)
  const key = (line: string) => line.replace(/^(\d+) (\S+) (\S+)/, '$1 $3 $2')
  const sorted: string[] = []
  for (let index = 0; index < lines.length; index++) {
    const run: string[] = []
    while (isCall(lines[index + run.length])) run.push(lines[index + run.length] as string)
    if (run.length === 0) sorted.push(lines[index] as string)
    else {
      sorted.push(...run.toSorted((a, b) => (key(a) < key(b) ? 1 : -1)))
      index += run.length - 1
    }
  }
  return sorted
}
