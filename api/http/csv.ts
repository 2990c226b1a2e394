import { stringify } from 'csv-stringify/sync'

/**
 * Returns rows of equal keys as the chunks of a CSV file with a head, RFC 4180. A cell that a spreadsheet would take for a
 * formula gets an apostrophe before it.
 */
export async function* csvOf(rows: object[], columns: string[]): AsyncGenerator<Uint8Array> {
  yield Buffer.from(stringify(rows, { header: true, columns, escape_formulas: true, record_delimiter: 'windows' }))
}
