/** Problem of an archive: a sentence for its sender. */
export class ArchiveProblem extends Error {
  override name = 'ArchiveProblem'
}

const MAX_SHOWN = 200

/** Returns a problem of one entry, with its name. */
export const problemOf = (entry: string, problem: string): ArchiveProblem =>
  new ArchiveProblem(`${JSON.stringify(entry.slice(0, MAX_SHOWN).toWellFormed())} ${problem}`)
