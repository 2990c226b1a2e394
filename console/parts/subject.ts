/** Arguments that name the subject of a tool call. */
const SUBJECT_NAMES = [
  'path',
  'file',
  'command',
  'query',
  'sql',
  'pattern',
  'url',
  'key',
  'name',
  'question',
  'message',
  'id',
]
const MAX_CHARACTERS = 80

/** Returns the subject of a call in a few words, or ''. */
export function subjectOf(given: Record<string, unknown> | undefined): string {
  const texts = Object.entries(given ?? {}).filter(([, value]) => typeof value === 'string' && value !== '')
  const [, subject = ''] = texts.find(([name]) => SUBJECT_NAMES.includes(name)) ?? texts[0] ?? []
  const [line = ''] = String(subject).slice(0, 1000).trim().split('\n')
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS - 1).toWellFormed()}…` : line
}
