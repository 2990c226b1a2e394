import { Prisma } from '../../prisma/generated/client.ts'
import { invalid } from './errors.ts'

type Db = Pick<Prisma.TransactionClient, '$queryRaw'>

/** Texts that are searched: all of sessions, or only the messages of users. */
type Searched = 'in' | 'input'

/**
 * Number of found things up to which they are looked up and sorted. When there are more, a list is read in its order
 * and each of its rows is checked: the next match is not far.
 */
export const MAX_FOUND = 10_000

/** Returns the condition that `words` of session_texts match; prisma/functions/search_words.sql has the marks. */
export const matchesSql = (organizationId: string, search: string, searched: Searched): Prisma.Sql =>
  Prisma.sql`words @@ (${`'${searched} ${organizationId}'`}::tsquery && websearch_to_tsquery('simple', ${search}))`

/** Throws `invalid` for a search that no index can answer: without a word, or with excluded words only. */
export async function checkSearch(db: Db, search: string): Promise<void> {
  const [row] = await db.$queryRaw<{ tree: string }[]>`
    SELECT querytree(websearch_to_tsquery('simple', ${search})) AS tree`
  if (row === undefined || row.tree === '' || row.tree === 'T')
    throw invalid('search: must have a word to look for, such as invoice; -invoice alone excludes')
}
