import type { Ids } from './belongings.ts'
import type { Planned } from './requests.ts'
import type { Received } from './walk.ts'

/** Returns the forms in which an id may appear: with its prefix, without it, and as a UUID. */
function formsOf(id: string): string[] {
  const hex = id.slice(id.lastIndexOf('_') + 1)
  const dashed = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return [id, hex, dashed, id.replaceAll('-', '')]
}

/** Returns the ids that a request contains, with their names. */
export function namesIn(sent: Planned, ids: Ids): [name: string, id: string][] {
  const all = decodeURIComponent(JSON.stringify(sent))
  return Object.entries(ids).filter(([, id]) => all.includes(id) || all.includes(id.replace('session_', 'sess_')))
}

/** Returns the answer with the ids that were sent replaced by placeholders. */
export function withoutEcho({ body, ...answer }: Received, sent: Planned, ids: Ids): Received {
  const replaced = namesIn(sent, ids).reduce((text, [name, id]) => text.replaceAll(id, `<${name}>`), body)
  return { ...answer, body: replaced }
}

/** Expects that an answer contains none of the ids in any form. */
export function expectNothingOf(ids: Ids, { headers, body }: Received): void {
  const sent = JSON.stringify(headers) + body
  const forms = Object.values(ids).flatMap(formsOf)
  expect(forms.filter((form) => sent.includes(form))).toEqual([])
}
