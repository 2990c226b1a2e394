import type { GrepMatch } from '../../../../contract/files.ts'
import { cutAt } from '../../../../lib/truncate.ts'
import type { Room } from './job.ts'

/** Maximum length of a returned line, in UTF-16 code units. */
const MAX_LINE_LENGTH = 1000

/** Finds the lines of a text that match, without their ends, \n or \r\n. */
export function* findLines(path: string, text: string, isMatch: (line: string) => boolean): Generator<GrepMatch> {
  let lineNumber = 0
  // A byte order mark belongs to the file, not to its first line.
  for (let start = text.startsWith('\ufeff') ? 1 : 0; start < text.length; ) {
    const end = text.indexOf('\n', start)
    const line = withoutReturn(text.slice(start, end === -1 ? undefined : end))
    lineNumber++
    if (isMatch(line)) yield { path, line_number: lineNumber, line: cutAt(line, MAX_LINE_LENGTH) }
    if (end === -1) return
    start = end + 1
  }
}

const withoutReturn = (line: string): string => (line.endsWith('\r') ? line.slice(0, -1) : line)

/** Takes room for a match. False if there is not enough. */
export function takeRoom(room: Room, match: GrepMatch): boolean {
  const bytes = Buffer.byteLength(JSON.stringify(match))
  if (room.matches < 1 || room.bytes < bytes) return false
  room.matches -= 1
  room.bytes -= bytes
  return true
}
