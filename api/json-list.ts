import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Context } from 'koa'
import type { Logger } from 'pino'

/** A client that takes nothing for this long is cut off, so that nobody holds pages for good. */
const STALLED_MS = 60_000

/** Answers `{"data":[…]}` page by page, as fast as the client takes it: the whole list is never in memory. */
export async function answerList(
  ctx: Context,
  log: Logger,
  pages: AsyncGenerator<string[]>,
  stalledMs = STALLED_MS,
): Promise<undefined> {
  // The first page is read before the answer begins, so that a failure can still be told.
  const first = await pages.next()
  const body = new PassThrough()
  ctx.res.setTimeout(stalledMs, () => ctx.res.destroy())
  ctx.type = 'application/json'
  ctx.body = body
  pipeline(Readable.from(listText(first, pages)), body).catch((error: Error) => {
    if (!ctx.res.destroyed) log.warn({ err: error.message }, 'list broken off')
  })
}

/** Pages of a list as the lines of answerList. */
export async function* linesOf(pages: AsyncGenerator<unknown[]>): AsyncGenerator<string[]> {
  for await (const page of pages) yield page.map((item) => JSON.stringify(item))
}

async function* listText(first: IteratorResult<string[]>, rest: AsyncGenerator<string[]>): AsyncGenerator<string> {
  let separator = '{"data":['
  try {
    for (let next = first; !next.done; next = await rest.next()) {
      yield separator + next.value.join(',')
      separator = ','
    }
    yield separator === ',' ? ']}' : '{"data":[]}'
  } finally {
    await rest.return(undefined)
  }
}
