import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type Router from '@koa/router'
import type { Middleware } from 'koa'
import { createFileSender } from '../../http/compressed.ts'

const MODULE = new URL('../../../embed/dist/embed.js', import.meta.url)

type Script = { content: Buffer; etag: string }

/**
 * Serves the element `<agent-chat>` at `/embed.js` to pages of all origins. It takes the address that it was loaded from
 * as the service's, so with a prefix it is beside the API, and `/embed.js` redirects there.
 */
export function addEmbed(router: Router, prefix: string): void {
  let script: Promise<Script> | undefined
  const open = () => {
    script ??= readScript()
    script.catch(() => {
      script = undefined
    })
    return script
  }
  const send = createFileSender()
  const forAllPages: Middleware = (ctx, next) => {
    ctx.set('Access-Control-Allow-Origin', '*')
    ctx.remove('Access-Control-Allow-Credentials')
    ctx.set('Cross-Origin-Resource-Policy', 'cross-origin')
    ctx.set('Cache-Control', 'no-cache')
    return next()
  }

  router.get(`${prefix}/embed.js`, forAllPages, async (ctx) => {
    const { content, etag } = await open()
    ctx.type = 'text/javascript'
    ctx.etag = etag
    ctx.status = 200
    ctx.vary('Accept-Encoding')
    if (ctx.fresh) ctx.status = 304
    else await send(ctx, etag, content)
  })
  // Relative, because a proxy may have taken away a part of the path.
  if (prefix !== '') router.get('/embed.js', forAllPages, (ctx) => ctx.redirect(`${prefix.slice(1)}/embed.js`))
}

async function readScript(): Promise<Script> {
  const content = await readFile(MODULE)
  // Weak: the encodings differ in their bytes.
  return { content, etag: `W/"${createHash('sha256').update(content).digest('hex').slice(0, 32)}"` }
}
