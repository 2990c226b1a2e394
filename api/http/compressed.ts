import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { Context } from 'koa'

const ENCODERS = { br: promisify(brotliCompress), gzip: promisify(gzip) }
type Encoding = keyof typeof ENCODERS

/** Answers with a file that never changes under its name, in the best encoding that the client takes. */
export type SendFile = (ctx: Context, name: string, content: Buffer) => Promise<void>

/** Creates a sender that compresses each file once for each encoding. */
export function createFileSender(): SendFile {
  const encoded = new Map<string, Promise<Buffer>>()
  return async (ctx, name, content) => {
    const encoding = chooseEncoding(ctx)
    ctx.vary('Accept-Encoding')
    if (encoding === undefined) {
      ctx.body = content
      return
    }
    const key = `${encoding} ${name}`
    const body = encoded.get(key) ?? ENCODERS[encoding](content)
    encoded.set(key, body)
    ctx.set('Content-Encoding', encoding)
    ctx.body = await body
  }
}

function chooseEncoding(ctx: Context): Encoding | undefined {
  const chosen = ctx.acceptsEncodings('br', 'gzip', 'identity')
  return chosen === 'br' || chosen === 'gzip' ? chosen : undefined
}
