/**
 * A list has one of three shapes, by how long it may become. `All`: it has a small cap and is read whole. `Pages`: it has
 * no end in sight, so a page is read when the client has taken the one before. `Counted`: `Pages` of a part of it, beside
 * the length of the whole.
 */
export type All<T> = T[]
export type Pages<T> = AsyncGenerator<T[]>
export type Counted<T> = { pages: Pages<T>; total: number; offset: number; limit: number }

/** `after`: the last row of the page before; undefined for the first, which begins `skip` rows further on. */
export type Place<Row> = { after: Row | undefined; skip: number; take: number }

type Paging<Row, T> = {
  /** Reads at most `take` rows by keyset, fewer where they are large; `hasMore` unless they are the last. */
  read: (place: Place<Row>) => Promise<{ rows: Row[]; hasMore: boolean }>
  present: (rows: Row[]) => T[] | Promise<T[]>
  /** Rows of a page at most. */
  atOnce: number
  offset?: number | undefined
  /** Rows of the whole list at most; without it, all. */
  limit?: number | undefined
}

/** A list read page by page, as the client takes it: in memory is one page. */
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
    // Large ones are looked for in small numbers.
    wanted = Math.min(atOnce, 2 * rows.length)
  }
}

type Counting<T> = Omit<Counted<T>, 'pages'> & {
  /** What is at the offset, up to the limit, in order. */
  ids: string[]
  /** Reads those of the ids that are still there, in their order. */
  read: (ids: string[]) => Promise<T[]>
  /** Rows of a page. */
  atOnce: number
}

/** A part of a list that knows its length. */
export function counted<T>({ ids, read, atOnce, ...numbers }: Counting<T>): Counted<T> {
  async function* readInParts(): Pages<T> {
    for (let start = 0; start < ids.length; start += atOnce) {
      const items = await read(ids.slice(start, start + atOnce))
      if (items.length > 0) yield items
    }
  }
  return { pages: readInParts(), ...numbers }
}
