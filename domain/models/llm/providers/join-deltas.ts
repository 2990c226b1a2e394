/** Fields that only number or pad the events of a stream. */
const NUMBERING = /"(?:sequence_number": ?\d+|obfuscation": ?"\w*"),?/g
/** Maximum length of an event worth joining. */
const MAX_EVENT_LENGTH = 4096

/** Form of events that contain only a piece of a text: the text around the piece and its quotes. */
export type DeltaForm = { before: RegExp; after: RegExp }

/** An event that consists of `before`, a `piece` of a text, and `after`. */
type Delta = { before: string; piece: string; after: string; kind: string }

/**
 * Joins a stream's events that arrived together and differ only in a piece of the same text, because the SDK makes a
 * dozen objects of each event. `lines` are whole lines. Other events stay unchanged.
 */
export function joinDeltas(lines: string, form: DeltaForm): string {
  // A single event, or line ends of another kind than the servers send that stream many events.
  if (lines.indexOf('\n\n') === lines.length - 2 || lines.includes('\r')) return lines
  const events: string[] = []
  let last: Delta | undefined
  const finish = () => {
    if (last !== undefined) events.push(last.before + last.piece + last.after)
    last = undefined
  }
  for (const event of lines.split(/(?<=\n\n)/)) {
    const next = readDelta(event, form)
    if (next !== undefined && next.kind === last?.kind) {
      last.piece += next.piece
      continue
    }
    finish()
    if (next === undefined) events.push(event)
    else last = next
  }
  finish()
  return events.join('')
}

function readDelta(event: string, form: DeltaForm): Delta | undefined {
  if (event.length > MAX_EVENT_LENGTH || !event.endsWith('\n\n')) return undefined
  const match = form.before.exec(event)
  if (match === null) return undefined
  const start = match.index + match[0].length
  const end = closingQuote(event, start)
  const before = event.slice(0, start)
  const after = event.slice(end)
  if (end < 0 || !form.after.test(after)) return undefined
  return { before, piece: event.slice(start, end), after, kind: `${before}\0${after}`.replaceAll(NUMBERING, '') }
}

/** Returns the position of the quote that ends a JSON string, or -1. */
function closingQuote(text: string, start: number): number {
  let at = start
  for (;;) {
    const quote = text.indexOf('"', at)
    const backslash = text.indexOf('\\', at)
    if (backslash < 0 || quote < backslash) return quote
    at = backslash + 2
  }
}
