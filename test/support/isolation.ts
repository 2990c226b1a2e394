import type { Ids } from './belongings.ts'
import type { Planned } from './requests.ts'
import type { Received } from './walk.ts'

/** The forms in which an id may be told: with its prefix, without, and as a UUID. */
function formsOf(id: string): string[] {
  const hex = id.slice(id.lastIndexOf('_') + 1)
  const dashed = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return [id, hex, dashed, id.replaceAll('-', '')]
}

/** Which of the ids are in a request. */
export function namesIn(sent: Planned, ids: Ids): [name: string, id: string][] {
  const all = decodeURIComponent(JSON.stringify(sent))
  return Object.entries(ids).filter(([, id]) => all.includes(id) || all.includes(id.replace('session_', 'sess_')))
}

/** The answer without the ids that were sent. */
export function withoutEcho({ body, ...answer }: Received, sent: Planned, ids: Ids): Received {
  const replaced = namesIn(sent, ids).reduce((text, [name, id]) => text.replaceAll(id, `<${name}>`), body)
  return { ...answer, body: replaced }
}

/** Fails for an answer that tells something of the organization whose ids these are. */
export function expectNothingOf(ids: Ids, { headers, body }: Received): void {
  const told = JSON.stringify(headers) + body
  const forms = Object.values(ids).flatMap(formsOf)
  expect(forms.filter((form) => told.includes(form))).toEqual([])
}
