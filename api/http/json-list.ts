import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import { checksOf } from './answer-checks.ts'
import { endWithin, STALLED_MS, writeInPieces } from './back-pressure.ts'

/** Number of characters from which joined lines are written. */
const CHUNK_CHARS = 64 * 1024

/** Options of a list's answer; `more` has the fields beside the list, whose own field is `key`. */
export type ListOptions = { key?: string; more?: object; stalledMs?: number }

/** Form of an answer that is written line by line. */
type Form = {
  type: string
  key: string
  more: object
  stalledMs: number
  textOf: (items: Items) => AsyncGenerator<string>
}

/**
 * Answers `{"data":[…]}`, or the list by another key, line by line, as fast as the client takes it, so that the whole
 * list is never in memory. A list that breaks off closes the connection, so that it does not look complete.
 */
export const answerList = (
  ctx: Context,
  log: Logger,
  lines: AsyncGenerator<string>,
  { key = 'data', more = {}, stalledMs = STALLED_MS }: ListOptions = {},
): Promise<undefined> => {
  const textOf = (items: Items) => listText({ key, more, ...items })
  return answer(ctx, log, lines, { type: 'application/json', key, more, stalledMs, textOf })
}

/** Answers with the items of a list, one a line, as answerList does. `type` is the content type. */
export const answerLines = (
  ctx: Context,
  log: Logger,
  lines: AsyncGenerator<string>,
  type: string,
): Promise<undefined> =>
  answer(ctx, log, lines, { type, key: 'data', more: {}, stalledMs: STALLED_MS, textOf: plainText })

async function answer(
  ctx: Context,
  log: Logger,
  lines: AsyncGenerator<string>,
  { type, key, more, stalledMs, textOf }: Form,
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
    ctx.type = type
    if (ctx.method === 'HEAD') return
    ctx.respond = false
    await send(ctx.res, textOf({ first, read }), stalledMs).catch((error: Error) => {
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

type Items = { first: IteratorResult<string>; read: () => Promise<IteratorResult<string>> }

async function* plainText({ first, read }: Items): AsyncGenerator<string> {
  let text = ''
  for (let next = first; !next.done; next = await read()) {
    text += `${next.value}\n`
    if (text.length < CHUNK_CHARS) continue
    yield text
    text = ''
  }
  yield text
}

async function* listText({ key, first, read, more }: Items & Pick<Form, 'key' | 'more'>): AsyncGenerator<string> {
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
