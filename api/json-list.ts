import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Context } from 'koa'
import type { Logger } from 'pino'

/** A client that takes nothing for this long is cut off, so that nobody holds pages for good. */
const STALLED_MS = 60_000

/** `more`: fields beside the data. */
export type ListOptions = { more?: object; stalledMs?: number }

/** Answers `{"data":[…]}` page by page, as fast as the client takes it: the whole list is never in memory. */
export async function answerList(
  ctx: Context,
  log: Logger,
  pages: AsyncGenerator<string[]>,
  { more = {}, stalledMs = STALLED_MS }: ListOptions = {},
): Promise<undefined> {
  // The first page is read before the answer begins, so that a failure can still be told.
  const first = await pages.next()
  const body = new PassThrough()
  ctx.res.setTimeout(stalledMs, () => ctx.res.destroy())
  ctx.type = 'application/json'
  ctx.body = body
  pipeline(Readable.from(listText(first, pages, more)), body).catch((error: Error) => {
    if (!ctx.res.destroyed) log.warn({ err: error.message }, 'list broken off')
  })
}

/** Pages of a list as the lines of answerList. */
export async function* linesOf(pages: AsyncGenerator<unknown[]>): AsyncGenerator<string[]> {
  for await (const page of pages) yield page.map((item) => JSON.stringify(item))
}

async function* listText(
  first: IteratorResult<string[]>,
  rest: AsyncGenerator<string[]>,
  more: object,
): AsyncGenerator<string> {
  const fields = JSON.stringify(more).slice(1)
  const end = fields === '}' ? ']}' : `],${fields}`
  let separator = '{"data":['
  try {
    for (let next = first; !next.done; next = await rest.next()) {
      yield separator + next.value.join(',')
      separator = ','
    }
    yield separator === ',' ? end : `{"data":[${end}`
  } finally {
    await rest.return(undefined)
  }
}
