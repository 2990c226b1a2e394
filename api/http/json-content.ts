import { TextDecoder } from 'node:util'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import { checksOf } from './answer-checks.ts'
import { endWithin, STALLED_MS, writeInPieces } from './back-pressure.ts'

/** Content to send as a field of JSON: text, or base64 of its bytes. */
export type JsonContent = { encoding: 'text' | 'base64'; chunks: AsyncIterable<Uint8Array> }

/**
 * Answers a JSON object whose field `content` is written while it is read, as fast as the client takes it, so that it is
 * never whole in memory. An answer that breaks off closes the connection, so that it does not look complete.
 */
export async function answerContent(
  ctx: Context,
  log: Logger,
  fields: object,
  { encoding, chunks }: JsonContent,
): Promise<undefined> {
  checksOf(ctx)?.answer({ status: 200, body: { ...fields, encoding, content: '' } })
  ctx.status = 200
  ctx.type = 'application/json'
  if (ctx.method === 'HEAD') return
  ctx.respond = false
  const { res } = ctx
  const send = async () => {
    for await (const text of objectText({ ...fields, encoding }, encoding, chunks)) {
      if (!(await writeInPieces(res, text))) return void res.destroy()
    }
    endWithin(res, STALLED_MS)
  }
  await send().catch((error: Error) => {
    log.warn({ err: error, requestId: ctx.state.requestId }, 'file broken off')
    res.destroy()
  })
}

async function* objectText(
  fields: object,
  encoding: JsonContent['encoding'],
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<string> {
  yield `${JSON.stringify(fields).slice(0, -1)},"content":"`
  yield* encoding === 'base64' ? base64Of(chunks) : textOf(chunks)
  yield '"}'
}

/** Yields UTF-8 as the inside of a JSON string. A character may begin in one chunk and end in the next. */
async function* textOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  // "Ignoring" a byte order mark means leaving it in the text.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const inside = (text: string) => JSON.stringify(text).slice(1, -1)
  for await (const chunk of chunks) yield inside(decoder.decode(chunk, { stream: true }))
  yield inside(decoder.decode())
}

/** Yields base64, which is made of three bytes at a time. */
async function* base64Of(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0)
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk])
    const whole = bytes.length - (bytes.length % 3)
    yield bytes.toString('base64', 0, whole)
    rest = bytes.subarray(whole)
  }
  yield rest.toString('base64')
}
