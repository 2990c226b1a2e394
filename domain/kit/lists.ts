/**
 * Shapes of a list. `All` is short enough to be read whole. `Pages` is unbounded: each page is read when the client has
 * taken the previous one. `Counted` is a part of a list with the total length.
 */
export type All<T> = T[]
export type Pages<T> = AsyncGenerator<T[]>
export type Counted<T> = { pages: Pages<T>; total: number; offset: number; limit: number }

/**
 * Position of a page. `after` is the previous page's last row, undefined for the first page, which skips `skip` rows.
 */
export type PageStart<Row> = { after: Row | undefined; skip: number; take: number }

type Paging<Row, T> = {
  /**
   * Reads at most `take` rows by keyset, or fewer if they are large. `hasMore` is false if no rows are known to follow.
   */
  read: (place: PageStart<Row>) => Promise<{ rows: Row[]; hasMore: boolean }>
  present: (rows: Row[]) => T[] | Promise<T[]>
  /** Maximum number of rows in a page. */
  atOnce: number
  offset?: number | undefined
  /** Maximum number of rows in the whole list. Default: all. */
  limit?: number | undefined
}

/** Reads a list page by page as the client takes it, so that only one page is in memory. */
export async function* pages<Row, T>({ read, present, atOnce, offset = 0, ...rest }: Paging<Row, T>): Pages<T> {
  let wanted = atOnce
  let after: Row | undefined
  for (let left = rest.limit ?? Number.POSITIVE_INFINITY; left > 0; ) {
    const skip = after === undefined ? offset : 0
    const { rows, hasMore } = await read({ after, skip, take: Math.min(wanted, left) })
    if (rows.length > 0) yield await present(rows.slice(0, left))
    after = rows.at(-1)
    if (!hasMore || after === undefined) return
    left -= rows.length
    // A short page means large rows, so fewer are requested next.
    wanted = Math.min(atOnce, 2 * rows.length)
  }
}

type Found<T> = {
  /** Ids of the rows at the offset, up to the limit, in order. */
  ids: string[]
  /** Reads the rows that still exist, in the order of the ids. */
  read: (ids: string[]) => Promise<T[]>
  /** Number of rows in a page. */
  atOnce: number
}

/** Reads rows whose ids are known page by page as the client takes them. */
export async function* inParts<T>({ ids, read, atOnce }: Found<T>): Pages<T> {
  for (let start = 0; start < ids.length; start += atOnce) {
    const items = await read(ids.slice(start, start + atOnce))
    if (items.length > 0) yield items
  }
}

/** Returns a part of a list, with the length of the whole. */
export const counted = <T>({ ids, read, atOnce, ...numbers }: Found<T> & Omit<Counted<T>, 'pages'>): Counted<T> => ({
  pages: inParts({ ids, read, atOnce }),
  ...numbers,
})
