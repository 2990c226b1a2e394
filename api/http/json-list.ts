import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import { checksOf } from './answer-checks.ts'
import { endWithin, STALLED_MS, writeInPieces } from './back-pressure.ts'

/** Number of characters from which joined lines are written. */
const CHUNK_CHARS = 64 * 1024

/** Options of a list's answer; `more` has the fields beside the list, whose own field is `key`. */
export type ListOptions = { key?: string; more?: object; stalledMs?: number }

/**
 * Answers `{"data":[…]}`, or the list by another key, line by line, as fast as the client takes it, so that the whole
 * list is never in memory. A list that breaks off closes the connection, so that it does not look complete.
 */
export async function answerList(
  ctx: Context,
  log: Logger,
  lines: AsyncGenerator<string>,
  { key = 'data', more = {}, stalledMs = STALLED_MS }: ListOptions = {},
): Promise<undefined> {
  const checks = checksOf(ctx)
  const read = async () => {
    const line = await lines.next()
    if (!line.done) checks?.listItem(line.value, key)
    return line
  }
  try {
    checks?.listFields(more, key)
    // The first line is read before the answer begins, so that a failure can still be reported.
    const first = await read()
    ctx.status = 200
    ctx.type = 'application/json'
    if (ctx.method === 'HEAD') return
    ctx.respond = false
    await send(ctx.res, listText({ key, first, read, more }), stalledMs).catch((error: Error) => {
      log.warn({ err: error, requestId: ctx.state.requestId }, 'list broken off')
      ctx.res.destroy()
    })
  } finally {
    await lines.return(undefined)
  }
}

/** Yields the items of a list's pages as lines for answerList; nothing else serializes them. */
export async function* linesOf<T>(
  pages: AsyncGenerator<T[]>,
  toLine: (item: T) => string = JSON.stringify,
): AsyncGenerator<string> {
  for await (const page of pages) for (const item of page) yield toLine(item)
}

type ListText = {
  key: string
  first: IteratorResult<string>
  read: () => Promise<IteratorResult<string>>
  more: object
}

async function* listText({ key, first, read, more }: ListText): AsyncGenerator<string> {
  let text = `{${JSON.stringify(key)}:[`
  let separator = ''
  for (let next = first; !next.done; next = await read()) {
    text += separator + next.value
    separator = ','
    if (text.length < CHUNK_CHARS) continue
    yield text
    text = ''
  }
  const fields = JSON.stringify(more).slice(1)
  yield fields === '}' ? `${text}]}` : `${text}],${fields}`
}

async function send(res: ServerResponse, list: AsyncGenerator<string>, stalledMs: number): Promise<void> {
  for await (const text of list) {
    if (!(await writeInPieces(res, text, { stalledMs }))) return void res.destroy()
  }
  endWithin(res, stalledMs)
}
